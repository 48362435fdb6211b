// Rays, the spreading of light below skin, and strands from back to front.
#include "camera.h"

#include <atomic>
#include <thread>

#include "backdrop.h"

namespace {

// At this distance one unit is half the height of the picture.
constexpr float kFocal = 8.0f;
// The lens is shifted: the camera is at the height of the eyes, the head in the upper half.
constexpr float kShift = -.245f;

Vec3 rayOf(float u, float v) {
  return normalize({u, v + kShift, -kFocal});
}

float pixelsPerUnit(const View& view, int size, float depth) {
  return kFocal * .5f * float(size) * view.zoom / depth;
}

/** Projects a point. @param x, y pixels @returns false behind the camera */
bool project(Vec3 p, const View& view, int size, float& x, float& y, float& depth) {
  const Vec3 d = p - kCamera;
  if (d.z > -.1f) {
    return false;
  }
  const float u = d.x / -d.z * kFocal, v = d.y / -d.z * kFocal - kShift;
  x = ((u - view.x) * view.zoom + 1) * .5f * float(size);
  y = (1 - (v - view.y) * view.zoom) * .5f * float(size);
  depth = length(d);
  return true;
}

/** @returns where the ray meets an eye, or 1e9 */
float hitEye(const Eye& eye, Vec3 ray) {
  const Vec3 w = kCamera - eye.centre;
  const float b = dot(w, ray), root = b * b - dot(w, w) + sq(eye.radius);
  return root > 0 ? -b - std::sqrt(root) : 1e9f;
}

}  // namespace

void trace(const Head& head, const Studio& studio, const View& view, int samples, int threads,
           Picture& out) {
  const Backdrop backdrop(head.character());
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int y; (y = next++) < out.size;) {
      Random random(uint32_t(y) * 977u + 13u);
      for (int x = 0; x < out.size; x++) {
        const float u = view.x + ((float(x) + .5f) / float(out.size) * 2 - 1) / view.zoom,
                    v = view.y + (1 - (float(y) + .5f) / float(out.size) * 2) / view.zoom;
        const Vec3 ray = rayOf(u, v);
        const size_t at = size_t(y) * size_t(out.size) + size_t(x);
        Shaded& shaded = out.shaded[at];
        Hit hit;
        const bool found = head.scene().trace(kCamera, ray, hit);
        float eyeAt = 1e9f;
        size_t side = 0;
        for (size_t k = 0; k < 2; k++) {
          const float t = hitEye(head.eyes()[k], ray);
          if (t < eyeAt) {
            eyeAt = t, side = k;
          }
        }
        if (eyeAt < (found ? hit.t : 1e8f)) {
          shaded = shadeEye(head, studio, side, kCamera + ray * eyeAt, ray * -1.f, samples, random);
          out.depth[at] = eyeAt;
        } else if (found) {
          const Vertex vertex = head.scene().at(hit);
          const Material material = head.scene().materialOf(hit);
          shaded = material == Material::kSkin
                       ? shadeSkin(head, studio, vertex, ray * -1.f, samples, random)
                       : shadeCloth(head, studio, vertex, material, ray * -1.f, samples, random);
          out.depth[at] = hit.t;
        } else {
          shaded.added = backdrop.at(u, v);
          out.depth[at] = 1e9f;
        }
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

void scatter(const View& view, Picture& out) {
  // Two Gaussians a colour (E. d'Eon et al. 2007, fewer), along rows, then along columns. Light
  // does not cross to what is deeper or nearer, nor to what is not skin.
  struct Profile {
    float radius;
    Vec3 share;
  };
  constexpr Profile kProfiles[] = {
      {.0055f, {.25f, .55f, .75f}}, {.016f, {.40f, .37f, .22f}}, {.042f, {.35f, .08f, .03f}}};
  const int n = out.size;
  std::vector<Vec3> sum(out.shaded.size(), Vec3{0, 0, 0}), rows(out.shaded.size());
  for (const Profile& profile : kProfiles) {
    for (int pass = 0; pass < 2; pass++) {
      for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++) {
          const size_t at = size_t(y) * size_t(n) + size_t(x);
          if (!out.shaded[at].isSkin) {
            continue;
          }
          const float sigma = std::max(.3f, profile.radius * pixelsPerUnit(view, n, out.depth[at]));
          const int reach = int(std::ceil(2.5f * sigma));
          Vec3 total{0, 0, 0};
          float weight = 0;
          for (int k = -reach; k <= reach; k++) {
            const int i = pass == 0 ? x + k : x, j = pass == 0 ? y : y + k;
            if (i < 0 || j < 0 || i >= n || j >= n) {
              continue;
            }
            const size_t other = size_t(j) * size_t(n) + size_t(i);
            if (!out.shaded[other].isSkin) {
              continue;
            }
            const float away = (out.depth[other] - out.depth[at]) / (profile.radius * 3);
            const float w = std::exp(-.5f * sq(float(k) / sigma) - sq(away));
            total = total + (pass == 0 ? out.shaded[other].diffuse : rows[other]) * w;
            weight += w;
          }
          const Vec3 blurred = total * (1 / weight);
          if (pass == 0) {
            rows[at] = blurred;
          } else {
            sum[at] = sum[at] + blurred * profile.share;
          }
        }
      }
    }
  }
  for (size_t i = 0; i < out.shaded.size(); i++) {
    const Shaded& s = out.shaded[i];
    out.colour[i] = s.albedo * (s.isSkin ? sum[i] : s.diffuse) + s.added;
  }
}

namespace {

struct Segment {
  float x0, y0, x1, y1, depth, width;
  Vec3 colour;
  bool onSkin;
};

}  // namespace

void drawStrands(const std::vector<Strand>& strands, const Studio& studio,
                 const HairOcclusion& hair, const View& view, Picture& out) {
  std::vector<Segment> segments;
  for (const Strand& s : strands) {
    for (size_t k = 0; k + 1 < s.points.size(); k++) {
      Segment g;
      float d0, d1;
      if (!project(s.points[k], view, out.size, g.x0, g.y0, d0) ||
          !project(s.points[k + 1], view, out.size, g.x1, g.y1, d1)) {
        continue;
      }
      if (std::max(g.x0, g.x1) < -4 || std::min(g.x0, g.x1) > float(out.size) + 4 ||
          std::max(g.y0, g.y1) < -4 || std::min(g.y0, g.y1) > float(out.size) + 4) {
        continue;
      }
      const float t = (float(k) + .5f) / float(s.points.size() - 1);
      g.depth = .5f * (d0 + d1);
      g.width = s.radius * mix(1.f, s.taper, t) * pixelsPerUnit(view, out.size, g.depth);
      const Vec3 middle = mix(s.points[k], s.points[k + 1], .5f);
      g.colour = shadeStrand(studio, hair, middle, normalize(s.points[k + 1] - s.points[k]),
                             normalize(kCamera - middle),
                             mix(s.root, s.tip, smoothstep(.05f, .9f, t)), s.gloss, s.onSkin);
      g.onSkin = s.onSkin;
      segments.push_back(g);
    }
  }
  std::stable_sort(segments.begin(), segments.end(),
                   [](const Segment& a, const Segment& b) { return a.depth > b.depth; });
  for (const Segment& g : segments) {
    const float half = std::max(g.width, .5f),
                alpha = std::min(1.f, g.width / half) * (g.onSkin ? .92f : .85f);
    const int x0 = std::max(0, int(std::floor(std::min(g.x0, g.x1) - half - 1))),
              x1 = std::min(out.size - 1, int(std::ceil(std::max(g.x0, g.x1) + half + 1)));
    const int y0 = std::max(0, int(std::floor(std::min(g.y0, g.y1) - half - 1))),
              y1 = std::min(out.size - 1, int(std::ceil(std::max(g.y0, g.y1) + half + 1)));
    const float dx = g.x1 - g.x0, dy = g.y1 - g.y0, len2 = std::max(1e-6f, dx * dx + dy * dy);
    for (int y = y0; y <= y1; y++) {
      for (int x = x0; x <= x1; x++) {
        const float px = float(x) + .5f - g.x0, py = float(y) + .5f - g.y0;
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
        const size_t at = size_t(y) * size_t(out.size) + size_t(x);
        if (g.depth - (g.onSkin ? .035f : .004f) > out.depth[at]) {
          continue;
        }
        out.colour[at] = mix(out.colour[at], g.colour, cover * alpha);
        if (cover * alpha > .3f) {
          out.depth[at] = std::min(out.depth[at], g.depth);
        }
      }
    }
  }
}
