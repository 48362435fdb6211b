// Samples what the camera sees, and writes the character.
#include "scene.h"

#include <atomic>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace {

/** At this distance one unit is half the height of the picture. */
constexpr float kFocal = 8.0f;
/** The lens is shifted: the camera is at the height of the eyes, the head in the upper half. */
constexpr float kShift = -.245f;

/** Brightness of hair on the skin, by its colours, and of that when it is grey. Chosen by eye. */
constexpr float kSparse = .75f, kSparseGrey = 2.4f;
/** Hair on the skin is coarse. */
constexpr float kCoarse = 1.4f;

void write(const std::string& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), std::streamsize(bytes));
  file.close();
  if (!file) {
    throw std::runtime_error("cannot write " + path);
  }
}

template <typename T>
void write(const std::string& path, const std::vector<T>& values) {
  write(path, values.data(), values.size() * sizeof(T));
}

/** @returns where the ray meets an eye, or 1e9 */
float hitEye(const Eye& eye, Vec3 ray) {
  const Vec3 w = kCamera - eye.centre;
  const float b = dot(w, ray), root = b * b - dot(w, w) + sq(eye.radius);
  return root > 0 ? -b - std::sqrt(root) : 1e9f;
}

/** @param u, v of the picture, -1 to 1 @returns what is seen there */
Surface seenAt(const Head& head, float u, float v) {
  const Vec3 ray = normalize({u, v + kShift, -kFocal});
  Hit hit;
  const bool found = head.scene().trace(kCamera, ray, hit);
  float eyeAtDistance = 1e9f;
  size_t side = 0;
  for (size_t k = 0; k < 2; k++) {
    const float t = hitEye(head.eyes()[k], ray);
    if (t < eyeAtDistance) {
      eyeAtDistance = t, side = k;
    }
  }
  if (eyeAtDistance < (found ? hit.t : 1e8f)) {
    return eyeAt(head, side, kCamera + ray * eyeAtDistance, -ray);
  }
  if (!found) {
    return {};
  }
  const Vertex vertex = head.scene().at(hit);
  const Material material = head.scene().materialOf(hit);
  return material == Material::kSkin ? skinAt(head, vertex) : clothAt(head, vertex, material, -ray);
}

std::vector<float> mapOf(const Head& head, int size, int threads) {
  std::vector<float> map(size_t(size) * size_t(size) * 8);
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int y; (y = next++) < size;) {
      for (int x = 0; x < size; x++) {
        const Surface s = seenAt(head, (float(x) + .5f) / float(size) * 2 - 1,
                                 1 - (float(y) + .5f) / float(size) * 2);
        float* out = map.data() + (size_t(y) * size_t(size) + size_t(x)) * 8;
        for (const float value : {s.albedo.x, s.albedo.y, s.albedo.z, s.normal.x, s.normal.y,
                                  s.normal.z, s.specular, s.roughness}) {
          *out++ = value;
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
  return map;
}

void writeMesh(const Mesh& mesh, const std::string& folder) {
  std::vector<float> vertices;
  for (const Vertex& v : mesh.vertices()) {
    vertices.insert(vertices.end(),
                    {v.at.x, v.at.y, v.at.z, v.normal.x, v.normal.y, v.normal.z, v.masks[0]});
  }
  write(folder + "/vertices.f32", vertices);
  write(folder + "/triangles.i32", mesh.triangles());
  write(folder + "/materials.u8", mesh.materials());
}

void writeHair(const std::vector<Strand>& strands, const Character& c, const std::string& folder) {
  std::vector<float> values, points;
  for (const Strand& s : strands) {
    const float light = !s.onSkin ? c.hairLight : mix(kSparse, kSparseGrey, c.grey);
    const Vec3 root = s.root * light, tip = s.tip * light;
    values.insert(values.end(),
                  {float(s.points.size()), s.radius * (s.onSkin ? kCoarse : 1.f), s.taper,
                   s.onSkin ? 1.f : 0.f, root.x, root.y, root.z, tip.x, tip.y, tip.z});
    for (const Vec3& p : s.points) {
      points.insert(points.end(), {p.x, p.y, p.z});
    }
  }
  write(folder + "/strands.f32", values);
  write(folder + "/points.f32", points);
}

}  // namespace

void writeScene(const Head& head, const std::vector<Strand>& strands, int size, int threads,
                const std::string& folder) {
  const Character& c = head.character();
  writeMesh(head.scene(), folder);
  writeHair(strands, c, folder);
  write(folder + "/map.f32", mapOf(head, size, threads));
  std::ostringstream json;
  json << "{\n\"size\": " << size << ",\n\"camera\": [" << kCamera.x << ", " << kCamera.y << ", "
       << kCamera.z << "],\n\"focal\": " << kFocal << ",\n\"shift\": " << kShift
       << ",\n\"irisRadius\": " << head.irisRadius() << ",\n\"eyes\": [";
  for (size_t k = 0; k < 2; k++) {
    const Eye& eye = head.eyes()[k];
    json << (k == 0 ? "" : ", ") << "[" << eye.centre.x << ", " << eye.centre.y << ", "
         << eye.centre.z << ", " << eye.radius << "]";
  }
  json << "]\n}\n";
  const std::string text = json.str();
  write(folder + "/scene.json", text.data(), text.size());
}
