// The JavaScript function allocatedBytes (src/native/addon.ts).
#include <cmath>

#include "adapters/adapters.h"
#include "adapters/napi_class.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace mouthpiece {

namespace {

napi_value allocated(const js::Args& args) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = mallinfo2();
  return js::number(args.env(), double(info.uordblks) + double(info.hblkhd));
#else
  return js::number(args.env(), std::nan(""));
#endif
}

}  // namespace

void register_memory(napi_env env, napi_value exports) {
  js::define_function<allocated>(env, exports, "allocatedBytes");
}

}  // namespace mouthpiece
