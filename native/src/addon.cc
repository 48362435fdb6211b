// The module's entry point: asks every adapter to put its classes and functions on `exports`.
#include "adapters/adapters.h"
#include "adapters/napi_util.h"

// Runs once per JavaScript thread that loads the addon. There is no global state, so threads need not know of each other.
NAPI_MODULE_INIT() {
  return mouthpiece::js::guard(env, [&]() -> napi_value {
#define MOUTHPIECE_ADAPTER(name) mouthpiece::register_##name(env, exports);
#include "adapters.inc"
#undef MOUTHPIECE_ADAPTER
    return exports;
  });
}
