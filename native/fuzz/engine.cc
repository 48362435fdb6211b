// libFuzzer for JavaScript: an addon through which libFuzzer calls a JavaScript function with
// inputs and reads the coverage counters of instrumented modules.
#include <node_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*callback)(const uint8_t*, size_t));
extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
extern "C" void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);

namespace {

/** An input that takes longer than this is reported as a hang. Long enough for a busy machine. */
constexpr auto HANG = std::chrono::seconds(20);

napi_env env_;
napi_value function_;
napi_threadsafe_function remote_;
std::vector<std::string> arguments_;
std::mutex mutex_;
std::condition_variable done_;
enum class Outcome { pending, fine, failed } outcome_;

struct Unit {
  const uint8_t* data;
  size_t size;
};

/** Reports a failure. libFuzzer stores the input when it gets SIGABRT. */
[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

bool call(napi_env env, napi_value function, const Unit& unit) {
  napi_handle_scope scope;
  napi_open_handle_scope(env, &scope);
  void* copy;
  napi_value buffer, global, result;
  const bool is_fine =
      napi_create_buffer_copy(env, unit.size, unit.data, &copy, &buffer) == napi_ok &&
      napi_get_global(env, &global) == napi_ok &&
      napi_call_function(env, global, function, 1, &buffer, &result) == napi_ok;
  napi_close_handle_scope(env, scope);
  return is_fine;
}

/** Runs one input on the main thread. The target has already reported what is wrong. */
int run_here(const uint8_t* data, size_t size) {
  if (!call(env_, function_, {data, size})) {
    fail("the target threw");
  }
  return 0;
}

/**
 * Runs one input from libFuzzer's thread, for targets that return promises: the event loop goes on.
 */
int run_remotely(const uint8_t* data, size_t size) {
  Unit unit{data, size};
  std::unique_lock lock(mutex_);
  outcome_ = Outcome::pending;
  if (napi_call_threadsafe_function(remote_, &unit, napi_tsfn_blocking) != napi_ok) {
    fail("the event loop has ended");
  }
  if (!done_.wait_for(lock, HANG, [] { return outcome_ != Outcome::pending; })) {
    fail("the target hangs");
  }
  if (outcome_ == Outcome::failed) {
    fail("the target threw");
  }
  return 0;
}

void settle(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  outcome_ = outcome;
  done_.notify_one();
}

void call_remote(napi_env env, napi_value function, void*, void* data) {
  if (env == nullptr || !call(env, function, *static_cast<Unit*>(data))) {
    settle(Outcome::failed);
  }
}

/** libFuzzer calls exit(), whose destructors would free what Node's other threads still use. */
void leave(int status, void*) {
  std::fflush(nullptr);
  std::_Exit(status);
}

void drive(int (*callback)(const uint8_t*, size_t)) {
  std::vector<char*> argv;
  for (auto& argument : arguments_) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  int argc = int(arguments_.size());
  char** pointer = argv.data();
  on_exit(leave, nullptr);
  LLVMFuzzerRunDriver(&argc, &pointer, callback);
  std::exit(0);
}

/**
 * JavaScript: start(target, arguments, isAsync). The first argument is the command with which
 * libFuzzer can start this process again.
 */
napi_value start(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value given[3];
  napi_get_cb_info(env, info, &count, given, nullptr, nullptr);
  uint32_t length = 0;
  napi_get_array_length(env, given[1], &length);
  for (uint32_t i = 0; i < length; ++i) {
    napi_value element;
    size_t bytes = 0;
    napi_get_element(env, given[1], i, &element);
    napi_get_value_string_utf8(env, element, nullptr, 0, &bytes);
    std::string text(bytes + 1, '\0');
    napi_get_value_string_utf8(env, element, text.data(), text.size(), &bytes);
    text.resize(bytes);
    arguments_.push_back(text);
  }
  bool is_async = false;
  napi_get_value_bool(env, given[2], &is_async);
  if (!is_async) {
    env_ = env;
    function_ = given[0];
    drive(run_here);
  }
  napi_value name;
  napi_create_string_utf8(env, "fuzz", NAPI_AUTO_LENGTH, &name);
  napi_create_threadsafe_function(env, given[0], nullptr, name, 1, 1, nullptr, nullptr, nullptr,
                                  call_remote, &remote_);
  std::thread([] { drive(run_remotely); }).detach();
  return nullptr;
}

/** JavaScript: done(isFine). Called when an asynchronous target has finished its input. */
napi_value done(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given;
  bool is_fine = false;
  napi_get_cb_info(env, info, &count, &given, nullptr, nullptr);
  napi_get_value_bool(env, given, &is_fine);
  settle(is_fine ? Outcome::fine : Outcome::failed);
  return nullptr;
}

/**
 * JavaScript: counters(count). @returns a Uint8Array that libFuzzer reads after each input, one
 * element per edge. It lives as long as the process.
 */
napi_value counters(napi_env env, napi_callback_info info) {
  size_t argc = 1;
  napi_value given, memory, array;
  uint32_t count = 0;
  napi_get_cb_info(env, info, &argc, &given, nullptr, nullptr);
  napi_get_value_uint32(env, given, &count);
  auto* bytes = static_cast<uint8_t*>(std::calloc(count, 1));
  auto* places = static_cast<uintptr_t*>(
      std::calloc(2 * size_t(count), sizeof(uintptr_t)));  // (address, flags) of each
  for (uint32_t i = 0; i < count; ++i) {
    places[2 * i] = reinterpret_cast<uintptr_t>(bytes + i);
  }
  __sanitizer_cov_8bit_counters_init(bytes, bytes + count);
  __sanitizer_cov_pcs_init(places, places + 2 * size_t(count));
  napi_create_external_arraybuffer(env, bytes, count, nullptr, nullptr, &memory);
  napi_create_typedarray(env, napi_uint8_array, count, memory, 0, &array);
  return array;
}

}  // namespace

NAPI_MODULE_INIT() {
  const std::pair<const char*, napi_callback> functions[] = {
      {"start", start}, {"done", done}, {"counters", counters}};
  for (const auto& [name, callback] : functions) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
    napi_set_named_property(env, exports, name, function);
  }
  return exports;
}
