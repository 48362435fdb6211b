// The JavaScript functions pinThread, allowedCpus, makeThreadRealtime, setThreadName, threadId and
// threadCpuMs (src/native/addon.ts).
#include "core/threads.h"

#include "adapters/adapters.h"
#include "adapters/napi_class.h"

namespace mouthpiece {

namespace {

using js::Args;

napi_value pin(const Args& args) {
  const std::span<const int32_t> cpus = args.array<int32_t>(0, "cpus");
  for (const int32_t cpu : cpus) {
    if (cpu < 0 || cpu > 8191) {
      throw std::out_of_range("cpus: " + std::to_string(cpu) + " is not a CPU number");
    }
  }
  pin_thread(cpus);
  return nullptr;
}

napi_value allowed(const Args& args) {
  const std::vector<int> cpus = allowed_cpus();
  napi_value list;
  js::check(args.env(), napi_create_array_with_length(args.env(), cpus.size(), &list));
  for (size_t i = 0; i < cpus.size(); i++) {
    js::check(args.env(),
              napi_set_element(args.env(), list, uint32_t(i), js::integer(args.env(), cpus[i])));
  }
  return list;
}

napi_value realtime(const Args&) {
  make_thread_realtime();
  return nullptr;
}

napi_value name(const Args& args) {
  set_thread_name(args.string(0, "name"));
  return nullptr;
}

napi_value id(const Args& args) {
  return js::integer(args.env(), thread_id());
}

napi_value cpu_ms(const Args& args) {
  return js::number(args.env(), thread_cpu_ms());
}

}  // namespace

void register_threads(napi_env env, napi_value exports) {
  js::define_function<pin>(env, exports, "pinThread");
  js::define_function<allowed>(env, exports, "allowedCpus");
  js::define_function<realtime>(env, exports, "makeThreadRealtime");
  js::define_function<name>(env, exports, "setThreadName");
  js::define_function<id>(env, exports, "threadId");
  js::define_function<cpu_ms>(env, exports, "threadCpuMs");
}

}  // namespace mouthpiece
