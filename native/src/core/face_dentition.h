// What differs between people's teeth. Most portraits do not show them: they are drawn from the
// face's proportions.
#pragma once

namespace mouthpiece::face {

struct Model;

/** Of the upper row and the lower one. */
struct Dentition {
  // How even a row is, 0 to 1.
  float level = 0;   // second incisors are as long as the first ones
  float blunt = 0;   // canines
  float flat = 0;    // the biting edges do not rise to the sides
  float square = 0;  // corners of the teeth
  float shown = 0;   // how much more of them the lips leave free, 0 to 1
  // From -1 to 1.
  float gaps = 0;   // how deep
  float wide = 0;   // first incisors
  float aside = 0;  // the middle of the row, to the right in the picture
  float light = 0;
};

/**
 * A portrait gives the same teeth each time, on any machine: they are continuous functions of the
 * distances between its landmarks.
 */
Dentition dentition_of(const Model& model);

}  // namespace mouthpiece::face
