// Makes one character, and writes it for the path tracer. For the arguments see usage().
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "scene.h"

namespace {

int usage() {
  std::fprintf(stderr,
               "usage: characters <character> <heads> <folder> <size>\n"
               "  heads: the folder of the meshes; folder: where the scene is written;\n"
               "  size: points of its map in a row\n"
               "characters list\n");
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
  const int size = argc == 5 ? std::atoi(argv[4]) : 0;
  if (size < 16 || size > 8192) {
    return usage();
  }
  const Character* found = findCharacter(argv[1]);
  if (!found) {
    std::fprintf(stderr, "no character %s\n", argv[1]);
    return 2;
  }
  try {
    const Head head(*found, argv[2]);
    const int threads = int(std::max(1u, std::thread::hardware_concurrency()));
    writeScene(head, growHair(head), size, threads, argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
