// Declares the adapters. Each src/adapters/NAME.cc defines
// `void register_NAME(napi_env env, napi_value exports)`; the build generates the list
// adapters.inc.
#pragma once
#include <node_api.h>

namespace mouthpiece {
#define MOUTHPIECE_ADAPTER(name) void register_##name(napi_env env, napi_value exports);
#include "adapters.inc"
#undef MOUTHPIECE_ADAPTER
}  // namespace mouthpiece
