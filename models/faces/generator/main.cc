// Renders one character: rays for skin, eyes and clothes, then strands from back to front.
// For the arguments see usage().
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shade.h"

namespace {

constexpr float kFocal = 4.2f;  // at this distance one unit is half the height of the picture
constexpr Vec3 kCamera{0, -.16f, 8.3f};

struct Picture {
  int size;
  std::vector<Vec3> colour;
  std::vector<float> depth;
};

Vec3 rayOf(float u, float v) {
  return normalize({u, v - .015f, -kFocal});
}

/** The rendered part of the picture, to examine details. */
struct View {
  float x = 0, y = 0, zoom = 1;
} view;

/** Projects a point. @param x, y pixels @param depth distance @returns false behind the camera */
bool project(Vec3 p, int size, float& x, float& y, float& depth) {
  const Vec3 d = p - kCamera;
  if (d.z > -.1f) {
    return false;
  }
  const float u = d.x / -d.z * kFocal, v = d.y / -d.z * kFocal + .015f;
  x = ((u - view.x) * view.zoom + 1) * .5f * float(size);
  y = (1 - (v - view.y) * view.zoom) * .5f * float(size);
  depth = length(d);
  return true;
}

void trace(const Head& head, const Shader& shader, Picture& out, int threads) {
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int y; (y = next++) < out.size;) {
      for (int x = 0; x < out.size; x++) {
        const float u = view.x + ((x + .5f) / out.size * 2 - 1) / view.zoom,
                    v = view.y + (1 - (y + .5f) / out.size * 2) / view.zoom;
        const Vec3 ray = rayOf(u, v);
        float t = 6.2f;
        bool hit = false;
        Material material = Material::kSkin;
        for (int i = 0; i < 140 && t < 11; i++) {
          const float d = head.distance(kCamera + ray * t, &material);
          if (d < .0006f) {
            hit = true;
            break;
          }
          t += d * .72f;
        }
        const size_t at = size_t(y) * out.size + x;
        out.depth[at] = hit ? t : 1e9f;
        out.colour[at] = hit ? shader.surface(kCamera + ray * t, ray * -1.f, material)
                             : backdrop(head.character(), u, v);
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; i++) {
    pool.emplace_back(work);
  }
  for (auto& thread : pool) {
    thread.join();
  }
}

struct Segment {
  float x0, y0, x1, y1, depth, w0, w1;
  Vec3 colour;
  bool onSkin;
};

void drawStrands(const std::vector<Strand>& strands, const Shader& shader, Picture& out) {
  std::vector<Segment> segments;
  for (const Strand& s : strands) {
    for (size_t k = 0; k + 1 < s.points.size(); k++) {
      Segment g;
      float d0, d1;
      if (!project(s.points[k], out.size, g.x0, g.y0, d0) ||
          !project(s.points[k + 1], out.size, g.x1, g.y1, d1)) {
        continue;
      }
      if (std::max(g.x0, g.x1) < -4 || std::min(g.x0, g.x1) > out.size + 4 ||
          std::max(g.y0, g.y1) < -4 || std::min(g.y0, g.y1) > out.size + 4) {
        continue;
      }
      const float t = (float(k) + .5f) / float(s.points.size() - 1);
      g.depth = .5f * (d0 + d1);
      const float pixels = kFocal * .5f * float(out.size) * view.zoom / g.depth;
      g.w0 = s.radius * mix(1.f, s.taper, t) * pixels;
      g.w1 = g.w0;
      const Vec3 middle = mix(s.points[k], s.points[k + 1], .5f);
      g.colour = shader.strand(middle, normalize(s.points[k + 1] - s.points[k]),
                               normalize(kCamera - middle),
                               mix(s.root, s.tip, smoothstep(.05f, .9f, t)), s.onSkin);
      g.onSkin = s.onSkin;
      segments.push_back(g);
    }
  }
  std::stable_sort(segments.begin(), segments.end(),
                   [](const Segment& a, const Segment& b) { return a.depth > b.depth; });
  for (const Segment& g : segments) {
    const float half = std::max(g.w0, .5f),
                alpha = std::min(1.f, g.w0 / half) * (g.onSkin ? .92f : .80f);
    const int x0 = std::max(0, int(std::floor(std::min(g.x0, g.x1) - half - 1))),
              x1 = std::min(out.size - 1, int(std::ceil(std::max(g.x0, g.x1) + half + 1)));
    const int y0 = std::max(0, int(std::floor(std::min(g.y0, g.y1) - half - 1))),
              y1 = std::min(out.size - 1, int(std::ceil(std::max(g.y0, g.y1) + half + 1)));
    const float dx = g.x1 - g.x0, dy = g.y1 - g.y0, len2 = std::max(1e-6f, dx * dx + dy * dy);
    for (int y = y0; y <= y1; y++) {
      for (int x = x0; x <= x1; x++) {
        const float px = x + .5f - g.x0, py = y + .5f - g.y0;
        const float t = (px * dx + py * dy) / len2;
        if (t < -.5f / std::sqrt(len2) || t > 1) {
          continue;  // half-open, so that joints are drawn once
        }
        const float h = clamp01(t);
        const float distance = std::sqrt(sq(px - h * dx) + sq(py - h * dy));
        const float cover = clamp01(half + .5f - distance);
        if (cover <= 0) {
          continue;
        }
        const size_t at = size_t(y) * out.size + x;
        if (g.depth - (g.onSkin ? .035f : .004f) > out.depth[at]) {
          continue;
        }
        out.colour[at] = mix(out.colour[at], g.colour, cover * alpha);
      }
    }
  }
}

int usage() {
  std::fprintf(stderr,
               "usage: portraits <character> <out.ppm> <size> [samples=2] [key=value ...]\n"
               "  key: yaw pitch roll (radians), age, beard, smile, eyeOpen, hairAmount; threads; "
               "x y zoom (a part of the picture: -1..1)\nportraits list\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "list") == 0) {
    int count;
    const Character* all = allCharacters(&count);
    for (int i = 0; i < count; i++) {
      std::printf("%s\n", all[i].id);
    }
    return 0;
  }
  if (argc < 4) {
    return usage();
  }
  const Character* found = findCharacter(argv[1]);
  if (!found) {
    std::fprintf(stderr, "no character %s\n", argv[1]);
    return 2;
  }
  Character character = *found;
  const int size = std::atoi(argv[3]), samples = argc > 4 ? std::atoi(argv[4]) : 2;
  int threads = int(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 5; i < argc; i++) {
    const char* equals = std::strchr(argv[i], '=');
    if (!equals) {
      return usage();
    }
    const std::string key(static_cast<const char*>(argv[i]), equals);
    const float value = float(std::atof(equals + 1));
    if (key == "yaw") {
      character.yaw = value;
    } else if (key == "pitch") {
      character.pitch = value;
    } else if (key == "roll") {
      character.roll = value;
    } else if (key == "age") {
      character.age = value;
    } else if (key == "beard") {
      character.beard = value;
    } else if (key == "smile") {
      character.smile = value;
    } else if (key == "eyeOpen") {
      character.eyeOpen = value;
    } else if (key == "hairAmount") {
      character.hairAmount = value;
    } else if (key == "zoom") {
      view.zoom = value;
    } else if (key == "x") {
      view.x = value;
    } else if (key == "y") {
      view.y = value;
    } else if (key == "threads") {
      threads = int(value);
    } else {
      return usage();
    }
  }
  if (size < 16 || size > 4096 || samples < 1 || samples > 4) {
    return usage();
  }

  const Head head(character);
  const std::vector<Strand> strands = growHair(head);
  const HairOcclusion shade(strands, kLights.key);
  const Shader shader(head, shade);
  Picture picture{size * samples, {}, {}};
  picture.colour.resize(size_t(picture.size) * picture.size);
  picture.depth.resize(picture.colour.size());
  trace(head, shader, picture, threads);
  drawStrands(strands, shader, picture);

  std::vector<unsigned char> bytes(size_t(size) * size * 3);
  for (int y = 0; y < size; y++) {
    for (int x = 0; x < size; x++) {
      Vec3 sum{0, 0, 0};
      for (int j = 0; j < samples; j++) {
        for (int i = 0; i < samples; i++) {
          sum = sum +
                toneMap(picture.colour[size_t(y * samples + j) * picture.size + x * samples + i]);
        }
      }
      sum = sum * (1.f / (samples * samples));
      // Dither of half a level, against banding in the backdrop.
      const float dither = hash(x, y, 1) - .5f;
      const float c[3] = {sum.x, sum.y, sum.z};
      for (int k = 0; k < 3; k++) {
        bytes[(size_t(y) * size + x) * 3 + k] =
            (unsigned char)(clampTo(c[k] * 255 + .5f + dither, 0, 255));
      }
    }
  }
  const std::string part = std::string(argv[2]) + ".part";
  FILE* file = std::fopen(part.c_str(), "wb");
  if (!file) {
    std::perror(part.c_str());
    return 1;
  }
  std::fprintf(file, "P6 %d %d 255\n", size, size);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written || std::rename(part.c_str(), argv[2]) != 0) {
    std::perror(argv[2]);
    return 1;
  }
  return 0;
}
