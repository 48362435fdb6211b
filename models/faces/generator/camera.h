// The picture: what the rays brought, the spreading of light in skin, and the camera's finish.
#pragma once
#include "shade.h"

struct Picture {
  int size = 0;
  std::vector<Shaded> shaded;
  std::vector<Vec3> colour;
  std::vector<float> depth;
};

/** Part of the picture that is rendered, to examine details. */
struct View {
  float x = 0, y = 0, zoom = 1;
};

/** Casts a ray through each pixel, and fills `shaded` and `depth`. */
void trace(const Head& head, const Studio& studio, const View& view, int samples, int threads,
           Picture& out);
/** Spreads the light below skin, and fills `colour`. */
void scatter(const View& view, Picture& out);
void drawStrands(const std::vector<Strand>& strands, const Studio& studio,
                 const HairOcclusion& hair, const View& view, Picture& out);
/** Blurs what is not as far away as the eyes, the backdrop apart. */
void focus(const Head& head, const View& view, int samples, Picture& out);
/** Spreads a small part of the light over what is near it in the picture. */
void glow(Picture& out);
/** Averages samples * samples pixels into one, and finishes the picture. @returns RGB */
std::vector<unsigned char> develop(const Picture& picture, int samples, uint32_t seed);
