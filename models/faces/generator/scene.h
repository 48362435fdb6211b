// What the generator hands to the path tracer (models/faces/render).
#pragma once
#include <string>

#include "hair.h"
#include "surface.h"

/**
 * Writes a character to files of a folder, in the machine's byte order:
 * - scene.json: the rest, and `size` of the map;
 * - vertices.f32: 7 values each: position, normal, how far inside a garment's outline;
 * - triangles.i32: 3 vertices each; materials.u8: a Material for each triangle;
 * - map.f32: 8 values for each of size x size points that the camera sees, rows from the top:
 *   albedo, normal, specular, roughness;
 * - strands.f32: 10 values each: points, radius at the root, its share at the tip, 1 on the skin,
 *   colours at root and tip; points.f32: 3 values each.
 *
 * @param size points of the map in a row @throws std::runtime_error when a file cannot be written
 */
void writeScene(const Head& head, const std::vector<Strand>& strands, int size, int threads,
                const std::string& folder);
