// Measures the portrait's grade (see face_grade.h). Bounds were chosen on 150 photographs,
// paintings and drawings.
#include "core/face_grade.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/face_age.h"
#include "core/face_model.h"
#include "core/face_outline.h"

namespace mouthpiece::face {
namespace {

/** Vertices of the FaceMesh topology on the cheeks. */
constexpr std::array CHEEKS{50, 280, 205, 425};

/** A rectangle of the picture, whole pixels, inside it by a margin. */
struct Region {
  int x0, y0, x1, y1;
};

Region region(const Asset& asset, Point middle, float half_width, float half_height) {
  const auto clamp = [](float at, int size) { return int(std::clamp(at, 2.f, float(size - 3))); };
  return {clamp(middle.x - half_width, asset.width), clamp(middle.y - half_height, asset.height),
          clamp(middle.x + half_width, asset.width), clamp(middle.y + half_height, asset.height)};
}

/** The value below which `share` of a histogram lies. */
int quantile(const std::array<int, 256>& counts, float share) {
  int all = 0;
  for (const int count : counts) {
    all += count;
  }
  int below = 0;
  for (int value = 0; value < 256; value++) {
    below += counts[size_t(value)];
    if (float(below) > share * float(all)) {
      return value;
    }
  }
  return 255;
}

/**
 * The darkest parts of a face and of what is round it, as a quantile, and the share of their luma
 * that the back of a mouth has, up to a share of the median. Of 40 open mouths of people the back
 * had .84 of that luma at least, twice as much in the median. Where hair or clothes are black in a
 * picture whose face is not, a judge found a lighter mouth foggy.
 */
constexpr float BLACKEST = .004f, BLACK = .7f, MOST_BLACK = .35f;
/** Share of the face's pixels whose mean colour counts as that of its darkest parts. */
constexpr float DARKEST = .015f;

/**
 * Luma of white paper at least, the share of a face that it is, and luma of ink at most: .02 of the
 * face is darker. Faces of photographs and paintings have .57 of their pixels near one luma at
 * most.
 */
constexpr int PAPER = 213, INK = 93;
constexpr float PAPER_SHARE = .595f, INK_SHARE = .02f;

/** Measures the face's darkest parts (pupils, nostrils, lashes), and whether it is line art. */
void measure_black(const Model& model, Grade& grade) {
  const Asset& asset = model.asset;
  const Point nose = model.frame.to_picture(0, -.45f * model.face_height);
  const Region r = region(asset, nose, .75f * model.face_height, .8f * model.face_height);
  // What is behind the head has another colour in the dark: a mouth before a blue wall was blue. Of
  // the face each chroma sample's first pixel is enough.
  const Outline outline(model);
  const auto in_face = [&](int x, int y) {
    return outline.inside(model.frame.to_local(float(x), float(y))) > 0;
  };
  std::array<int, 256> all{}, counts{};
  std::vector<int> face;
  for (int y = (r.y0 + 1) / 2 * 2; y < r.y1; y += 2) {
    for (int x = (r.x0 + 1) / 2 * 2; x < r.x1; x += 2) {
      const int at = y * asset.width + x;
      all[asset.luma[at]]++;
      if (in_face(x, y)) {
        face.push_back(at);
        counts[asset.luma[at]]++;
      }
    }
  }
  const float most = MOST_BLACK * (float(quantile(all, .5f)) - 16);
  const float raised =
      std::clamp(BLACK * (float(quantile(all, BLACKEST)) - 16), 0.f, std::max(0.f, most));
  grade.black = 16 + raised;
  grade.line_art = tinted(asset) == 0 && quantile(counts, 1 - PAPER_SHARE) > PAPER &&
                   quantile(counts, INK_SHARE) < INK;
  if (grade.line_art) {
    grade.black = float(quantile(counts, INK_SHARE));
    grade.paper = float(quantile(counts, .5f));
  }
  const int darkest = quantile(counts, DARKEST);
  float count = 0, luma = 0, u = 0, v = 0;
  for (const int pixel : face) {
    const int dark = asset.luma[pixel];
    if (dark <= darkest) {
      const int at = pixel / asset.width / 2 * (asset.width / 2) + pixel % asset.width / 2;
      count++;
      luma += float(dark) - 16;
      u += float(asset.u[at]) - 128;
      v += float(asset.v[at]) - 128;
    }
  }
  // Of a colour that is brighter than the black, the same share is black's.
  const float share =
      std::min(1.f, raised / std::max(1.f, luma / std::max(1.f, count))) / std::max(1.f, count);
  grade.black_u = 128 + share * u;
  grade.black_v = 128 + share * v;
}

/**
 * Standard deviation of the skin's noise, luma: from the median response to a 3x3 Laplacian
 * (J. Immerkaer, Fast noise variance estimation, 1996).
 * @param step between its pixels: noise that was enlarged hardly differs from pixel to pixel
 */
float noise_of(const Model& model, int step) {
  const Asset& asset = model.asset;
  std::array<int, 256> counts{};
  for (const int index : CHEEKS) {
    const Region r =
        region(asset, asset.landmark(index), .05f * model.face_height, .05f * model.face_height);
    for (int y = r.y0; y < r.y1; y++) {
      for (int x = r.x0; x < r.x1; x++) {
        const uint8_t* p = asset.luma + y * asset.width + x;
        const uint8_t* up = p - step * asset.width;
        const uint8_t* down = p + step * asset.width;
        counts[size_t(std::min(255, std::abs(4 * p[0] - 2 * (p[-step] + p[step] + up[0] + down[0]) +
                                             up[-step] + up[step] + down[-step] + down[step])))]++;
      }
    }
  }
  return float(quantile(counts, .5f)) / .6745f / 6;
}

/** Fills `grain` with noise of a standard deviation. @param coarse 0 for that of single pixels to 1
 */
void make_grain(Grade& grade, float deviation, float coarse) {
  constexpr int MASK = GRAIN_SIDE - 1;
  std::vector<float> noise(grade.grain.size());
  uint32_t state = 1;
  for (float& value : noise) {
    value = 0;
    for (int i = 0; i < 4; i++) {  // nearly normal
      state = state * 1664525u + 1013904223u;
      value += float(state >> 8) / float(1u << 24) - .5f;
    }
  }
  // The binomial filter leaves 3/8 of the deviation.
  const float left = 1 - coarse * 5 / 8;
  for (int y = 0; y < GRAIN_SIDE; y++) {
    for (int x = 0; x < GRAIN_SIDE; x++) {
      const auto at = [&](int dx, int dy) {
        return noise[size_t(((y + dy) & MASK) * GRAIN_SIDE + ((x + dx) & MASK))];
      };
      const float blurred = (4 * at(0, 0) + 2 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) +
                             at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1)) /
                            16;
      // The sum of four has a deviation of sqrt(4 / 12).
      const float value = mix(at(0, 0), blurred, coarse) / left / .577f * deviation;
      grade.grain[size_t(y * GRAIN_SIDE + x)] = int16_t(std::lround(8 * value));
    }
  }
}

}  // namespace

float tinted(const Asset& asset) {
  // Gums of a colour picture have at least this ratio of V - 128 to luma - 16. Chosen by eye.
  constexpr float RED_GUMS = .25f;
  const Yuv gums = asset.tints.gums;
  return clamp01((float(gums.v) - 128) / std::max(1.f, float(gums.y) - 16) / RED_GUMS);
}

/**
 * Noise of skin that is drawn, rendered or retouched, luma: a third of 45 drawings and paintings
 * have less, and 5 of 73 photographs.
 */
constexpr float SMOOTH = .3f;

/**
 * Noise between adjacent pixels, luma: below the first it is not seen; what is above the second is
 * the skin's texture, which teeth do not have, unless there is noise of the camera.
 */
constexpr float LEAST_SEEN = .6f, MOST_TEXTURE = 4;
/**
 * Noise between pixels that are two apart, luma: skin in clean portraits has .5 to 3.2. Noise of
 * the camera with a deviation of 8 or 16 is found within a tenth, in enlarged portraits, too. And
 * the most that is drawn.
 */
constexpr std::array<float, 2> NOISY{3, 5};
constexpr float MOST_NOISE = 10;
/** How much of that is between adjacent pixels: of noise of single pixels, of enlarged noise. */
constexpr float SINGLE = .8f, ENLARGED = .35f;

Grade measure_grade(const Model& model) {
  Grade grade;
  measure_black(model, grade);
  const float near = noise_of(model, 1), far = noise_of(model, 2),
              noisy = smoothstep(NOISY[0], NOISY[1], far),
              grain = near < LEAST_SEEN ? 0 : std::min(near, MOST_TEXTURE);
  grade.age = age_of(model, near);
  grade.drawn = near < SMOOTH;
  make_grain(grade, mix(grain, std::min(far, MOST_NOISE), noisy),
             mix(smoothstep(.3f, .8f, model.softness),
                 smoothstep(SINGLE, ENLARGED, near / std::max(.1f, far)), noisy));
  return grade;
}

}  // namespace mouthpiece::face
