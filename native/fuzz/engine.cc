// libFuzzer for JavaScript: an addon that gives libFuzzer's inputs to JavaScript, one at a time,
// and lets libFuzzer read the coverage counters of instrumented modules.
#include <node_api.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*callback)(const uint8_t*, size_t));
extern "C" void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
extern "C" void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);

namespace {

/*
 * libFuzzer's loop calls the target and does not return. JavaScript must return to its event loop:
 * only there does Node free what native objects own once they are collected. So libFuzzer runs on
 * a stack of its own, on the same thread. Its callback switches to JavaScript's stack with one
 * input, and `next` switches back.
 */
constexpr size_t STACK_BYTES = 8 << 20;
ucontext_t javascript_, fuzzer_;
std::vector<std::string> arguments_;

struct Unit {
  const uint8_t* data;
  size_t size;
} unit_;

/** libFuzzer's callback. Returns when JavaScript asks for the next input. */
int hand_over(const uint8_t* data, size_t size) {
  unit_ = {data, size};
  swapcontext(&fuzzer_, &javascript_);
  return 0;
}

/** libFuzzer calls exit(), whose destructors would free what Node's other threads still use. */
void leave(int status, void*) {
  std::fflush(nullptr);
  std::_Exit(status);
}

void drive() {
  std::vector<char*> argv;
  for (auto& argument : arguments_) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  int argc = int(arguments_.size());
  char** pointer = argv.data();
  on_exit(leave, nullptr);
  LLVMFuzzerRunDriver(&argc, &pointer, hand_over);
  std::exit(0);
}

napi_value refuse(napi_env env, const char* why) {
  napi_throw_error(env, nullptr, why);
  return nullptr;
}

/**
 * JavaScript: start(arguments), once. The first argument is the command with which libFuzzer can
 * start this process again.
 */
napi_value start(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value given;
  napi_get_cb_info(env, info, &count, &given, nullptr, nullptr);
  uint32_t length = 0;
  napi_get_array_length(env, given, &length);
  for (uint32_t i = 0; i < length; ++i) {
    napi_value element;
    size_t bytes = 0;
    napi_get_element(env, given, i, &element);
    napi_get_value_string_utf8(env, element, nullptr, 0, &bytes);
    std::string text(bytes + 1, '\0');
    napi_get_value_string_utf8(env, element, text.data(), text.size(), &bytes);
    text.resize(bytes);
    arguments_.push_back(text);
  }
  void* stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED || getcontext(&fuzzer_) != 0) {
    return refuse(env, "no stack for libFuzzer");
  }
  fuzzer_.uc_stack.ss_sp = stack;
  fuzzer_.uc_stack.ss_size = STACK_BYTES;
  fuzzer_.uc_link = nullptr;
  makecontext(&fuzzer_, drive, 0);
  return nullptr;
}

/**
 * JavaScript: next(). Tells libFuzzer that the last input did no harm. Ends the process after the
 * last one.
 * @returns a Buffer with the next input
 */
napi_value next(napi_env env, napi_callback_info) {
  if (swapcontext(&javascript_, &fuzzer_) != 0) {
    return refuse(env, "libFuzzer has not started");
  }
  void* copy;
  napi_value buffer;
  if (napi_create_buffer_copy(env, unit_.size, unit_.data, &copy, &buffer) != napi_ok) {
    return refuse(env, "no memory for an input");
  }
  return buffer;
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
      {"start", start}, {"next", next}, {"counters", counters}};
  for (const auto& [name, callback] : functions) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
    napi_set_named_property(env, exports, name, function);
  }
  return exports;
}
