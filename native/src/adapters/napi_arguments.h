// Checked conversion between JavaScript's values and C++: numbers, typed arrays, options,
// arguments.
#pragma once
#include <node_api.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "adapters/napi_errors.h"

namespace mouthpiece::js {

// ---- Values ------------------------------------------------------------------------------------

inline napi_value number(napi_env env, double value) {
  napi_value result;
  check(env, napi_create_double(env, value, &result));
  return result;
}

inline napi_value integer(napi_env env, int32_t value) {
  napi_value result;
  check(env, napi_create_int32(env, value, &result));
  return result;
}

inline napi_value undefined(napi_env env) {
  napi_value result;
  check(env, napi_get_undefined(env, &result));
  return result;
}

inline napi_valuetype type_of(napi_env env, napi_value value) {
  napi_valuetype type;
  check(env, napi_typeof(env, value, &type));
  return type;
}

inline bool is_absent(napi_env env, napi_value value) {
  const napi_valuetype type = type_of(env, value);
  return type == napi_undefined || type == napi_null;
}

inline double to_number(napi_env env, napi_value value, std::string_view name, double low,
                        double high) {
  double result;
  if (napi_get_value_double(env, value, &result) != napi_ok) {
    throw std::invalid_argument(std::string(name) + " must be a number");
  }
  if (!(result >= low && result <= high)) {
    throw std::out_of_range(std::string(name) + " must be from " + std::to_string(low) + " to " +
                            std::to_string(high) + ", not " + std::to_string(result));
  }
  return result;
}

inline int64_t to_integer(napi_env env, napi_value value, std::string_view name, int64_t low,
                          int64_t high) {
  double result;
  if (napi_get_value_double(env, value, &result) != napi_ok) {
    throw std::invalid_argument(std::string(name) + " must be a number");
  }
  if (!(result >= double(low) && result <= double(high)) || result != std::floor(result)) {
    throw std::out_of_range(std::string(name) + " must be an integer from " + std::to_string(low) +
                            " to " + std::to_string(high) + ", not " + std::to_string(result));
  }
  return int64_t(result);
}

inline bool to_boolean(napi_env env, napi_value value, std::string_view name) {
  bool result;
  if (napi_get_value_bool(env, value, &result) != napi_ok) {
    throw std::invalid_argument(std::string(name) + " must be true or false");
  }
  return result;
}

inline std::string to_string(napi_env env, napi_value value, std::string_view name) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) != napi_ok) {
    throw std::invalid_argument(std::string(name) + " must be a string");
  }
  std::string result(length, '\0');
  check(env, napi_get_value_string_utf8(env, value, result.data(), length + 1, &length));
  return result;
}

// ---- Typed arrays ------------------------------------------------------------------------------

template <class Element>
struct ElementType;
template <>
struct ElementType<uint8_t> {
  static constexpr napi_typedarray_type code = napi_uint8_array;
  static constexpr const char* name = "Uint8Array";
};
template <>
struct ElementType<int16_t> {
  static constexpr napi_typedarray_type code = napi_int16_array;
  static constexpr const char* name = "Int16Array";
};
template <>
struct ElementType<int32_t> {
  static constexpr napi_typedarray_type code = napi_int32_array;
  static constexpr const char* name = "Int32Array";
};
template <>
struct ElementType<float> {
  static constexpr napi_typedarray_type code = napi_float32_array;
  static constexpr const char* name = "Float32Array";
};

/**
 * @returns the memory of a typed array over an ArrayBuffer or a SharedArrayBuffer. It is valid
 * until JavaScript runs again.
 * @throws std::invalid_argument for another type and for a detached array, whose length of 0 some
 * callers would accept
 */
template <class Element>
std::span<Element> to_span(napi_env env, napi_value value, std::string_view name) {
  using Type = ElementType<Element>;
  bool is_array = false;
  check(env, napi_is_typedarray(env, value, &is_array));
  napi_typedarray_type type{};
  size_t length = 0;
  void* data = nullptr;
  napi_value buffer = nullptr;
  if (is_array) {
    check(env, napi_get_typedarray_info(env, value, &type, &length, &data, &buffer, nullptr));
  }
  if (!is_array || type != Type::code) {
    throw std::invalid_argument(std::string(name) + " must be a " + Type::name);
  }
  if (length == 0) {
    bool detached = false;
    if (napi_is_detached_arraybuffer(env, buffer, &detached) == napi_ok && detached) {
      throw std::invalid_argument(std::string(name) +
                                  " is detached (it was transferred to another thread)");
    }
    return {};
  }
  return {static_cast<Element*>(data), length};
}

/** The same for an array of exactly `size` elements. */
template <class Element>
std::span<Element> to_span(napi_env env, napi_value value, std::string_view name, size_t size) {
  const auto span = to_span<Element>(env, value, name);
  if (span.size() != size) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(size) +
                                " elements, not " + std::to_string(span.size()));
  }
  return span;
}

// ---- Arguments ---------------------------------------------------------------------------------

/** An options object. Each value is checked when it is read. */
class Options {
 public:
  Options(napi_env env, napi_value object) : env_(env), object_(object) {
    if (type_of(env, object) != napi_object) {
      throw std::invalid_argument("options must be an object");
    }
  }

  bool has(const char* name) const { return !is_absent(env_, get(name)); }
  int64_t integer(const char* name, int64_t low, int64_t high) const {
    return to_integer(env_, get(name), name, low, high);
  }
  int64_t integer_or(const char* name, int64_t fallback, int64_t low, int64_t high) const {
    return has(name) ? integer(name, low, high) : fallback;
  }
  bool boolean_or(const char* name, bool fallback) const {
    return has(name) ? to_boolean(env_, get(name), name) : fallback;
  }

  /** @returns the index of the option's value in `choices` */
  size_t choice(const char* name, std::initializer_list<std::string_view> choices) const {
    const napi_value value = get(name);
    std::string list;
    if (type_of(env_, value) == napi_string) {
      const std::string text = to_string(env_, value, name);
      size_t index = 0;
      for (const auto choice : choices) {
        if (choice == text) {
          return index;
        }
        index++;
      }
    }
    for (const auto choice : choices) {
      list += (list.empty() ? "'" : ", '") + std::string(choice) + "'";
    }
    throw std::invalid_argument(std::string(name) + " must be one of " + list);
  }
  size_t choice_or(const char* name, size_t fallback,
                   std::initializer_list<std::string_view> choices) const {
    return has(name) ? choice(name, choices) : fallback;
  }

 private:
  napi_value get(const char* name) const {
    napi_value value;
    check(env_, napi_get_named_property(env_, object_, name, &value));
    return value;
  }

  napi_env env_;
  napi_value object_;
};

/** The arguments of one call. Missing ones are undefined. */
class Args {
 public:
  static constexpr size_t MAX = 8;

  Args(napi_env env, napi_callback_info info) : env_(env) {
    size_t count = MAX;
    check(env, napi_get_cb_info(env, info, &count, values_.data(), &self_, nullptr));
  }

  napi_env env() const { return env_; }
  napi_value self() const { return self_; }
  napi_value operator[](size_t index) const { return values_[index]; }
  bool absent(size_t index) const { return is_absent(env_, values_[index]); }
  Options options(size_t index) const { return {env_, values_[index]}; }

  template <class Element>
  std::span<Element> array(size_t index, std::string_view name) const {
    return to_span<Element>(env_, values_[index], name);
  }
  template <class Element>
  std::span<Element> array(size_t index, std::string_view name, size_t size) const {
    return to_span<Element>(env_, values_[index], name, size);
  }
  int64_t integer(size_t index, std::string_view name, int64_t low, int64_t high) const {
    return to_integer(env_, values_[index], name, low, high);
  }
  double number(size_t index, std::string_view name, double low, double high) const {
    return to_number(env_, values_[index], name, low, high);
  }
  bool boolean(size_t index, std::string_view name) const {
    return to_boolean(env_, values_[index], name);
  }
  std::string string(size_t index, std::string_view name) const {
    return to_string(env_, values_[index], name);
  }

 private:
  napi_env env_;
  napi_value self_ = nullptr;
  std::array<napi_value, MAX> values_{};
};

}  // namespace mouthpiece::js
