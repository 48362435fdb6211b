// The module's entry point: asks every adapter to put its classes and functions on `exports`.
#include "adapters/adapters.h"
#include "adapters/napi_util.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {

// An encoder's and a renderer's buffers are some hundred kilobytes each. Once glibc has seen such a
// block freed it raises its threshold for mmap and keeps the next ones in its arenas, where they
// splinter: half again as much memory stayed resident after 90 sessions come and gone (377 MB
// against 250, measured). Nothing is allocated per frame, so the system calls do not matter.
void give_freed_memory_back() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_TRIM_THRESHOLD, 256 * 1024);
#endif
}

}  // namespace

// Runs once per JavaScript thread that loads the addon. There is no global state but malloc's
// settings, which are always the same, so threads need not know of each other.
NAPI_MODULE_INIT() {
  give_freed_memory_back();
  return mouthpiece::js::guard(env, [&]() -> napi_value {
#define MOUTHPIECE_ADAPTER(name) mouthpiece::register_##name(env, exports);
#include "adapters.inc"
#undef MOUTHPIECE_ADAPTER
    return exports;
  });
}
