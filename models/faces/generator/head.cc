// Reads and subdivides a head, and finds its features.
#include "head.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace {

constexpr float kUnits = 6000;
constexpr Vec3 kNeckPivot{0, -.75f, -.15f};
// The grid of distances.
constexpr Vec3 kLow{-1.8f, -2.4f, -1.9f}, kHigh{1.8f, 1.7f, 1.5f};
constexpr float kCell = .025f;
constexpr int kX = int((kHigh.x - kLow.x) / kCell), kY = int((kHigh.y - kLow.y) / kCell),
              kZ = int((kHigh.z - kLow.z) / kCell);
constexpr int kCoarse = 4;

std::vector<char> bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T take(const std::vector<char>& bytes, size_t& at) {
  T value;
  if (at + sizeof value > bytes.size()) {
    throw std::runtime_error("a file of the head is too short");
  }
  std::copy_n(bytes.data() + at, sizeof value, reinterpret_cast<char*>(&value));
  at += sizeof value;
  return value;
}

}  // namespace

Head::Head(const Character& character, const std::string& folder) : c_(character) {
  Quads skin;
  read(folder, skin);
  sculpt(c_.sculpt, c_.seed, skin, eyesAtRest_);
  poseBody(c_.sculpt.shoulders, skin);
  closeLips(skin);
  moveMouth(skin);
  relax(c_.expression, eyesAtRest_[1].centre, skin);
  fitLids(skin);
  for (int i = 0; i < 2; i++) {
    skin = subdivide(skin);
  }
  computeNormals(skin);
  rest_ = Mesh();
  rest_.add(skin, Material::kSkin);
  rest_.build();
  findLandmarks(skin);
  fillGrid();
  findLids();
  const auto turn = [&](Quads& quads) {
    for (Vertex& v : quads.vertices) {
      v.at = turned(v.at);
    }
    computeNormals(quads);
  };
  Quads posed = skin;
  turn(posed);
  Quads bare = posed;
  for (Vertex& v : bare.vertices) {
    // Cloth is smoother than the body, which must not come through it at the shoulders.
    v.at = v.at - v.normal * (.10f * smoothstep(.6f, .9f, std::fabs(v.rest.x)) *
                              smoothstep(-1.45f, -1.75f, v.rest.y));
  }
  scene_.add(bare, Material::kSkin);
  addClothes(posed, *this, scene_);
  if (c_.glasses) {
    addGlasses(*this, scene_);
  }
  scene_.build();
  for (size_t i = 0; i < 2; i++) {
    eyes_[i] = {turned(eyesAtRest_[i].centre), eyesAtRest_[i].radius};
  }
}

void Head::read(const std::string& folder, Quads& skin) {
  const std::vector<char> topology = bytesOf(folder + "/topology.bin"),
                          shape = bytesOf(folder + "/" + c_.id + ".bin");
  size_t at = 0, in = 0;
  const auto count = take<uint32_t>(topology, at), faces = take<uint32_t>(topology, at),
             masks = take<uint32_t>(topology, at);
  const auto point = [&] {
    const float x = take<int16_t>(shape, in) / kUnits, y = take<int16_t>(shape, in) / kUnits,
                z = take<int16_t>(shape, in) / kUnits;
    return Vec3{x, y, z};
  };
  eyesAtRest_[1].centre = point();
  eyesAtRest_[0].centre = point();
  eyesAtRest_[0].radius = eyesAtRest_[1].radius = take<int16_t>(shape, in) / kUnits;
  skin.vertices.resize(count);
  for (Vertex& vertex : skin.vertices) {
    vertex.at = vertex.rest = point();
  }
  for (size_t k = 0; k < masks; k++) {
    for (Vertex& vertex : skin.vertices) {
      vertex.masks[k] = float(take<uint8_t>(topology, at)) / 255;
    }
  }
  skin.faces.resize(faces);
  for (auto& face : skin.faces) {
    for (int& corner : face) {
      corner = take<uint16_t>(topology, at);
    }
  }
}

void Head::moveMouth(Quads& skin) {
  Vec3 low{9, 9, 9}, high{-9, -9, -9};
  for (const Vertex& v : skin.vertices) {
    if (v.masks[0] > .5f && v.at.z > .3f) {
      low = {std::min(low.x, v.at.x), std::min(low.y, v.at.y), 0};
      high = {std::max(high.x, v.at.x), std::max(high.y, v.at.y), 0};
    }
  }
  // The targets raise the corners. The seam is measured and laid on a line that is nearly level:
  // its middle hangs a little, and the corners rise.
  for (int round = 0; round < 2; round++) {
    setRest(skin);
    LipOutline lips;
    lips.measure(*this, low.x, high.x, low.y, high.y);
    const float half = .5f * (high.x - low.x);
    const float level = .5f * (lips.seam(.35f * half) + lips.seam(-.35f * half));
    for (Vertex& v : skin.vertices) {
      if (v.at.z < .2f) {
        continue;
      }
      const float x = clampTo(v.at.x / half, -1.05f, 1.05f), seam = lips.seam(x * half);
      // Most of the line is nearly straight: it rises at its ends.
      const float rise = c_.smile * (.45f * sq(x) + .55f * sq(sq(x)));
      // The middle of the upper lip hangs, beside it the seam is higher.
      const float bend = .004f * gaussian(std::fabs(x), .40f, .20f) - .003f * gaussian(x, 0, .17f);
      const float wanted = level + rise + bend;
      const float beside = smoothstep(2.1f, 1.05f, std::fabs(v.at.x) / half);
      const float from = v.at.y - seam;
      v.at.y += (wanted - seam) * beside * gaussian(from, 0, from > 0 ? .17f : .20f);
      // Lips thin out towards the corners.
      const float far = v.at.y - wanted;
      v.at.y -= .26f * far * smoothstep(.35f, 1.f, std::fabs(x)) * beside * gaussian(far, 0, .11f);
      // The edge of the upper lip dips below the nose, between two peaks.
      const float edge = gaussian(v.at.y, high.y - .01f, .045f) * smoothstep(.3f, .5f, v.at.z);
      v.at.y += .0048f * c_.bow * edge *
                (gaussian(std::fabs(x), .24f, .12f) - 1.3f * gaussian(x, 0, .12f));
      v.rest = v.at;
    }
  }
}

void Head::findLandmarks(const Quads& skin) {
  float left = 9, right = -9, low = 9, high = -9;
  marks_.noseTip = {0, 0, -9};
  marks_.crown = -9;
  for (const Vertex& v : skin.vertices) {
    if (v.masks[0] > .5f && v.at.z > .3f) {
      left = std::min(left, v.at.x), right = std::max(right, v.at.x);
      low = std::min(low, v.at.y), high = std::max(high, v.at.y);
    }
    if (std::fabs(v.at.x) < .05f && v.at.y < 0 && v.at.y > -.5f && v.at.z > marks_.noseTip.z) {
      marks_.noseTip = v.at;
    }
    marks_.crown = std::max(marks_.crown, v.at.y);
    if (v.masks[1] > .7f && v.at.x > .5f) {
      earLow_ = {std::min(earLow_.x, v.at.x), std::min(earLow_.y, v.at.y),
                 std::min(earLow_.z, v.at.z)};
      earHigh_ = {std::max(earHigh_.x, v.at.x), std::max(earHigh_.y, v.at.y),
                  std::max(earHigh_.z, v.at.z)};
    }
  }
  marks_.earFront = earHigh_.z, marks_.earTop = earHigh_.y;
  marks_.mouthHalf = .5f * (right - left);
  marks_.lipBottom = low, marks_.lipTop = high;
  lips_.measure(*this, left, right, low, high);
  // The seam is where the face recedes most between the lips.
  float depth = 9;
  Vec3 p, n;
  for (float y = low; y < high; y += .002f) {
    if (onFront(0, y, p, n) && p.z < depth && y > low + .2f * (high - low) &&
        y < high - .2f * (high - low)) {
      depth = p.z;
      marks_.mouth = p;
    }
  }
  // The chin: where the profile turns below.
  marks_.chin = -1;
  for (float y = low - .1f; y > -1.3f; y -= .005f) {
    if (onFront(0, y, p, n) && n.z < .35f) {
      marks_.chin = y;
      break;
    }
  }
  marks_.noseBase = marks_.noseTip.y - .09f;
  findNostril();
  marks_.noseHalf = .1f;
  for (float x = .05f; x < .3f; x += .004f) {
    if (onFront(x, marks_.noseBase, p, n) && n.x < .35f && x > .12f) {
      marks_.noseHalf = x;
      break;
    }
  }
}

void Head::findNostril() {
  // Seen from the front it is a step of the depth below the tip of the nose.
  constexpr float kStep = .004f;
  float count = 0, sum = 0, sum2 = 0, sumY = 0, sumXY = 0;
  Vec3 p, q, n;
  for (float x = .02f; x < .22f; x += kStep) {
    float deepest = .040f, at = 0;
    for (float y = marks_.noseTip.y + .03f; y > marks_.noseTip.y - .14f; y -= kStep) {
      if (onFront(x, y, p, n) && onFront(x, y - kStep, q, n) && p.z - q.z > deepest) {
        deepest = p.z - q.z;
        at = y - .5f * kStep;
      }
    }
    if (at != 0) {
      count++, sum += x, sum2 += x * x, sumY += at, sumXY += x * at;
    }
  }
  if (count < 3) {
    throw std::runtime_error("no nostril");
  }
  marks_.nostril = {sum / count, sumY / count, 0};
  marks_.nostrilHalf = std::min(.036f, .5f * kStep * count);
  marks_.nostrilRise =
      clampTo((sumXY - sum * sumY / count) / (sum2 - sum * sum / count), -.6f, .6f);
  float steepest = 0;
  for (float x = marks_.nostril.x; x < .26f; x += kStep) {
    if (onFront(x, marks_.nostril.y + .035f, p, n) && n.x > steepest) {
      steepest = n.x;
      marks_.wing = x;
    }
  }
}

bool Head::vertexOnFront(float x, float y, Vertex& vertex) const {
  Hit hit;
  if (!rest_.trace({x, y, 3}, {0, 0, -1}, hit)) {
    return false;
  }
  vertex = rest_.at(hit);
  return true;
}

bool Head::onFront(float x, float y, Vec3& point, Vec3& normal) const {
  Vertex v;
  if (!vertexOnFront(x, y, v)) {
    return false;
  }
  point = v.at;
  normal = v.normal;
  return true;
}

void Head::findLids() {
  // Columns of rays from the front: the opening is where the eye is nearer than the skin.
  const Eye eye = eyesAtRest_[1];
  const auto isOpen = [&](float x, float y) {
    const float z2 = sq(eye.radius) - x * x - y * y;
    Vec3 p, n;
    return z2 > 0 && (!onFront(eye.centre.x + x, eye.centre.y + y, p, n) ||
                      p.z < eye.centre.z + std::sqrt(z2));
  };
  corners_ = {0, 0};
  for (int i = 0; i < kLids; i++) {
    const float x = (float(i) / (kLids - 1) * 2 - 1) * eye.radius;
    float low = 9, high = -9;
    for (float y = -eye.radius; y < eye.radius; y += .001f) {
      if (isOpen(x, y)) {
        low = std::min(low, y), high = std::max(high, y);
      }
    }
    if (low < high) {
      corners_[0] = std::min(corners_[0], x);
      corners_[1] = std::max(corners_[1], x);
    }
    upper_[size_t(i)] = high, lower_[size_t(i)] = low;
  }
  // Beyond the corners the lids stay together.
  for (int side = -1; side <= 1; side += 2) {
    float last = 0;
    for (int i = kLids / 2; i >= 0 && i < kLids; i += side) {
      if (upper_[size_t(i)] > -9) {
        last = .5f * (upper_[size_t(i)] + lower_[size_t(i)]);
      } else {
        upper_[size_t(i)] = lower_[size_t(i)] = last;
      }
    }
  }
}

float Head::lid(bool isUpper, float x) const {
  const auto& table = isUpper ? upper_ : lower_;
  const float at = clampTo((x / eyesAtRest_[1].radius + 1) * .5f * (kLids - 1), 0, kLids - 1.01f);
  const int i = int(at);
  return mix(table[size_t(i)], table[size_t(i) + 1], at - float(i));
}

bool Head::isOnEar(Vec3 p) const {
  const float x = std::fabs(p.x);
  return x > earLow_.x - .01f && p.y > earLow_.y && p.y < earHigh_.y + .02f && p.z > earLow_.z &&
         p.z < earHigh_.z;
}

Vec3 Head::turned(Vec3 p) const {
  // The neck twists between the body and the head.
  const float w = smoothstep(-1.75f, -.80f, p.y), yaw = mix(c_.bodyYaw, c_.yaw, w);
  const Vec3 q = p - kNeckPivot;
  const float cp = std::cos(c_.pitch), sp = std::sin(c_.pitch), cy = std::cos(yaw),
              sy = std::sin(yaw), cr = std::cos(c_.roll), sr = std::sin(c_.roll);
  const auto aside = [&](Vec3 v) { return Vec3{cy * v.x + sy * v.z, v.y, -sy * v.x + cy * v.z}; };
  const Vec3 up = aside({q.x, cp * q.y - sp * q.z, sp * q.y + cp * q.z});
  return mix(aside(q) + Vec3{0, c_.raised, 0}, {cr * up.x - sr * up.y, sr * up.x + cr * up.y, up.z},
             w) +
         kNeckPivot;
}

Vec3 Head::atRest(Vec3 p) const {
  Vec3 rest = p;
  for (int i = 0; i < 6; i++) {
    rest = rest + p - turned(rest);
  }
  return rest;
}

Vec3 Head::gridPoint(int x, int y, int z) const {
  return kLow + Vec3{float(x), float(y), float(z)} * kCell;
}

void Head::fillGrid() {
  grid_.assign(size_t(kX) * kY * kZ, 0);
  const auto at = [&](int x, int y, int z) -> float& {
    return grid_[(size_t(z) * kY + size_t(y)) * kX + size_t(x)];
  };
  // Far from the skin one value in a block of cells is enough.
  const float near = kCell * (kCoarse + 2);
  for (int z = 0; z < kZ; z += kCoarse) {
    for (int y = 0; y < kY; y += kCoarse) {
      for (int x = 0; x < kX; x += kCoarse) {
        const float middle = rest_.distance(gridPoint(x, y, z), 3);
        for (int k = z; k < std::min(kZ, z + kCoarse); k++) {
          for (int j = y; j < std::min(kY, y + kCoarse); j++) {
            for (int i = x; i < std::min(kX, x + kCoarse); i++) {
              at(i, j, k) =
                  std::fabs(middle) > near ? middle : rest_.distance(gridPoint(i, j, k), 3);
            }
          }
        }
      }
    }
  }
}

float Head::distance(Vec3 p) const {
  const float x = clampTo((p.x - kLow.x) / kCell, 0, kX - 1.01f),
              y = clampTo((p.y - kLow.y) / kCell, 0, kY - 1.01f),
              z = clampTo((p.z - kLow.z) / kCell, 0, kZ - 1.01f);
  const int i = int(x), j = int(y), k = int(z);
  const auto at = [&](int a, int b, int c) {
    return grid_[(size_t(k + c) * kY + size_t(j + b)) * kX + size_t(i + a)];
  };
  const float fx = x - float(i), fy = y - float(j), fz = z - float(k);
  const auto row = [&](int b, int c) { return mix(at(0, b, c), at(1, b, c), fx); };
  return mix(mix(row(0, 0), row(1, 0), fy), mix(row(0, 1), row(1, 1), fy), fz);
}

Vec3 Head::away(Vec3 p) const {
  const Vec3 a{1, -1, -1}, b{-1, -1, 1}, c{-1, 1, -1}, d{1, 1, 1};
  const float e = .025f;
  return normalize(a * distance(p + a * e) + b * distance(p + b * e) + c * distance(p + c * e) +
                   d * distance(p + d * e));
}
