// Renders one character: rays for skin, eyes and clothes, then strands from back to front.
// For the arguments see usage().
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "camera.h"

namespace {

int usage() {
  std::fprintf(
      stderr,
      "usage: portraits <character> <heads> <out.ppm> <size> [samples=2] [key=value ...]\n"
      "  key: rays (per lamp, 6), threads, hair (0: none), x y zoom (a part: -1..1), yaw pitch "
      "roll (radians)\nportraits list\n");
  return 2;
}

int render(Character character, int argc, char** argv) {
  const int size = std::atoi(argv[4]), samples = argc > 5 ? std::atoi(argv[5]) : 2;
  View view;
  int threads = int(std::max(1u, std::thread::hardware_concurrency())), rays = 6;
  bool hasHair = true;
  for (int i = 6; i < argc; i++) {
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
    } else if (key == "zoom") {
      view.zoom = value;
    } else if (key == "x") {
      view.x = value;
    } else if (key == "y") {
      view.y = value;
    } else if (key == "threads") {
      threads = int(value);
    } else if (key == "rays") {
      rays = int(value);
    } else if (key == "hair") {
      hasHair = value != 0;
    } else {
      return usage();
    }
  }
  if (size < 16 || size > 4096 || samples < 1 || samples > 4 || rays < 1) {
    return usage();
  }
  const Head head(character, argv[2]);
  const std::vector<Strand> strands = hasHair ? growHair(head) : std::vector<Strand>{};
  const HairOcclusion hair(strands, keyDirectionOf(character));
  const Studio studio(head, hair);
  Picture picture;
  picture.size = size * samples;
  picture.shaded.resize(size_t(picture.size) * size_t(picture.size));
  picture.depth.resize(picture.shaded.size());
  picture.colour.resize(picture.shaded.size());
  trace(head, studio, view, rays, threads, picture);
  scatter(view, picture);
  drawStrands(strands, studio, hair, view, picture);
  focus(head, view, samples, picture);
  glow(picture);
  const std::vector<unsigned char> bytes = develop(picture, samples, character.seed);

  const std::string part = std::string(argv[3]) + ".part";
  FILE* file = std::fopen(part.c_str(), "wb");
  if (!file) {
    std::perror(part.c_str());
    return 1;
  }
  std::fprintf(file, "P6 %d %d 255\n", size, size);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written || std::rename(part.c_str(), argv[3]) != 0) {
    std::perror(argv[3]);
    return 1;
  }
  return 0;
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
  if (argc < 5) {
    return usage();
  }
  const Character* found = findCharacter(argv[1]);
  if (!found) {
    std::fprintf(stderr, "no character %s\n", argv[1]);
    return 2;
  }
  try {
    return render(*found, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
