// Helpers of the adapters: checked arguments, JavaScript classes that own C++ objects, and
// exceptions.
//
// The core throws standard exceptions, which `guard` turns into JavaScript's:
//   std::invalid_argument: TypeError; std::out_of_range: RangeError; others: Error.
// Nothing here is global or thread-local: each thread that loads the addon has its own classes.
#pragma once
#include <node_api.h>

#include <array>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mouthpiece::js {

/** Thrown when a JavaScript exception is pending already: `guard` leaves that one as it is. */
struct PendingException {};
/** @throws std::runtime_error with N-API's message unless `status` is napi_ok */

inline void check(napi_env env, napi_status status) {
  if (status == napi_ok) {
    return;
  }
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (pending) {
    throw PendingException{};
  }
  const napi_extended_error_info* info = nullptr;
  napi_get_last_error_info(env, &info);
  throw std::runtime_error(info && info->error_message ? info->error_message : "N-API call failed");
}

/** Runs `body`. An exception becomes a JavaScript exception, and the result is undefined. */
template <class Body>
napi_value guard(napi_env env, Body&& body) noexcept {
  try {
    return body();
  } catch (const PendingException&) {
  } catch (const std::bad_alloc&) {
    napi_throw_range_error(env, nullptr, "Out of memory");
  } catch (const std::invalid_argument& error) {
    napi_throw_type_error(env, nullptr, error.what());
  } catch (const std::out_of_range& error) {
    napi_throw_range_error(env, nullptr, error.what());
  } catch (const std::exception& error) {
    napi_throw_error(env, nullptr, error.what());
  }
  return nullptr;
}

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
template <>
struct ElementType<double> {
  static constexpr napi_typedarray_type code = napi_float64_array;
  static constexpr const char* name = "Float64Array";
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
  double number(const char* name, double low, double high) const {
    return to_number(env_, get(name), name, low, high);
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

// ---- Functions and classes ---------------------------------------------------------------------

/** Defines `name` on `exports`. */
template <napi_value (*Function)(const Args&)>
void define_function(napi_env env, napi_value exports, const char* name) {
  const napi_callback callback = [](napi_env call_env, napi_callback_info info) -> napi_value {
    return guard(call_env, [&] { return Function(Args(call_env, info)); });
  };
  napi_value function;
  check(env, napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function));
  check(env, napi_set_named_property(env, exports, name, function));
}

/** A class may report its memory outside the JavaScript heap, for the garbage collector's schedule.
 */
template <class Native>
concept HoldsMemory = requires(const Native& native) {
  { native.external_bytes() } -> std::convertible_to<size_t>;
};

/**
 * A JavaScript class whose instances each own one `Native`. An adapter defines it by
 *
 *   using FaceClass = Class<Face>;
 *   FaceClass::define(env, exports, "Face",
 *                     {FaceClass::constructor<make_face>(), FaceClass::method<draw>("draw"),
 *                      FaceClass::getter<width>("width"), FaceClass::close()});
 *
 * with `std::unique_ptr<Face> make_face(const Args&)` and `napi_value draw(Face&, const Args&)`.
 * V8 checks that a method's `this` is an instance of the class; `from` checks it for arguments.
 */
template <class Native>
class Class {
 public:
  struct Member {
    const char* name;  // null for the constructor
    napi_callback method;
    napi_callback getter;
  };

  template <std::unique_ptr<Native> (*Make)(const Args&)>
  static Member constructor() {
    return {nullptr, &construct<Make>, nullptr};
  }
  template <napi_value (*Method)(Native&, const Args&)>
  static Member method(const char* name) {
    return {name, &call<Method>, nullptr};
  }
  template <napi_value (*Getter)(Native&, const Args&)>
  static Member getter(const char* name) {
    return {name, nullptr, &call<Getter>};
  }
  /** An idempotent `close()` that frees the native object. Every other member throws afterwards. */
  static Member close() { return {"close", &close_now, nullptr}; }

  static void define(napi_env env, napi_value exports, const char* name,
                     std::initializer_list<Member> members) {
    class_name() = name;
    napi_callback make = nullptr;
    std::vector<napi_property_descriptor> properties;
    for (const Member& member : members) {
      if (!member.name) {
        make = member.method;
      } else {
        properties.push_back({member.name, nullptr, member.method, member.getter, nullptr, nullptr,
                              member.getter ? napi_enumerable : napi_default_method, nullptr});
      }
    }
    napi_value constructor;
    check(env, napi_define_class(env, name, NAPI_AUTO_LENGTH, make, nullptr, properties.size(),
                                 properties.data(), &constructor));
    check(env, napi_set_named_property(env, exports, name, constructor));
  }

  /**
   * @returns the native object of an argument
   * @throws std::invalid_argument when the argument is not an instance, std::runtime_error when it
   * is closed
   */
  static Native& from(napi_env env, napi_value value, std::string_view argument) {
    bool ours = false;
    if (type_of(env, value) == napi_object) {
      check(env, napi_check_object_type_tag(env, value, &TAG, &ours));
    }
    if (!ours) {
      throw std::invalid_argument(std::string(argument) + " must be a " +
                                  std::string(class_name()));
    }
    return open(env, value);
  }

 private:
  struct Holder {
    std::unique_ptr<Native> native;
    int64_t bytes = 0;  // last reported to the garbage collector

    /** Reports the object's memory to the garbage collector when it has changed. */
    void report_memory(napi_env env) {
      if constexpr (HoldsMemory<Native>) {
        const int64_t now = native ? int64_t(native->external_bytes()) : 0,
                      before = std::exchange(bytes, now);
        int64_t total;
        if (now != before) {
          napi_adjust_external_memory(env, now - before, &total);
        }
      }
    }

    void free(napi_env env) {
      native.reset();
      report_memory(env);
    }
  };

  // The address of an object of each class makes the tag unique within the process.
  inline static const char tag_anchor = 0;
  inline static const napi_type_tag TAG{0x6d6f757468706965ULL,
                                        reinterpret_cast<uint64_t>(&tag_anchor)};

  // `define` runs in each thread and writes the same literal. It is atomic, so that they may do so
  // at the same time.
  struct Name {
    std::atomic<const char*> text{""};
    Name& operator=(const char* name) {
      text.store(name, std::memory_order_relaxed);
      return *this;
    }
    operator std::string() const { return text.load(std::memory_order_relaxed); }
  };
  static Name& class_name() {
    static Name name;
    return name;
  }

  static Holder& holder_of(napi_env env, napi_value object) {
    Holder* holder = nullptr;
    if (napi_unwrap(env, object, reinterpret_cast<void**>(&holder)) != napi_ok) {
      throw std::invalid_argument(std::string(class_name()) + " was not constructed");
    }
    if (!holder->native) {
      throw std::runtime_error(std::string(class_name()) + " is closed");
    }
    return *holder;
  }

  static Native& open(napi_env env, napi_value object) { return *holder_of(env, object).native; }

  template <std::unique_ptr<Native> (*Make)(const Args&)>
  static napi_value construct(napi_env env, napi_callback_info info) {
    return guard(env, [&]() -> napi_value {
      napi_value target = nullptr;
      check(env, napi_get_new_target(env, info, &target));
      if (!target) {
        throw std::invalid_argument(std::string(class_name()) + " must be called with new");
      }
      const Args args(env, info);
      auto holder = std::make_unique<Holder>();
      holder->native = Make(args);
      check(env, napi_type_tag_object(env, args.self(), &TAG));
      const napi_finalize finalize = [](napi_env final_env, void* data, void*) {
        const std::unique_ptr<Holder> dead(static_cast<Holder*>(data));
        dead->free(final_env);
      };
      check(env, napi_wrap(env, args.self(), holder.get(), finalize, nullptr, nullptr));
      holder.release()->report_memory(env);
      return args.self();
    });
  }

  template <napi_value (*Method)(Native&, const Args&)>
  static napi_value call(napi_env env, napi_callback_info info) {
    return guard(env, [&] {
      const Args args(env, info);
      Holder& holder = holder_of(env, args.self());
      const napi_value result = Method(*holder.native, args);
      holder.report_memory(env);
      return result;
    });
  }

  static napi_value close_now(napi_env env, napi_callback_info info) {
    return guard(env, [&]() -> napi_value {
      const Args args(env, info);
      Holder* holder = nullptr;
      if (napi_unwrap(env, args.self(), reinterpret_cast<void**>(&holder)) == napi_ok) {
        holder->free(env);
      }
      return nullptr;
    });
  }
};

}  // namespace mouthpiece::js
