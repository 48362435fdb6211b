// How old a face looks, which its teeth and its openings follow.
#pragma once

namespace mouthpiece::face {

struct Model;

/**
 * From 0, smooth and without grey hair, to 1. A figure for the teeth, not for the person: it is low
 * where the forehead cannot be seen.
 * @param model with its frame and face's height
 * @param grain standard deviation of the skin's noise, luma
 */
float age_of(const Model& model, float grain);

}  // namespace mouthpiece::face
