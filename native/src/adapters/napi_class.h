// JavaScript functions and classes around C++ functions and objects. Nothing here is global or
// thread-local: each thread that loads the addon has its own classes.
#pragma once
#include <node_api.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/napi_arguments.h"
#include "adapters/napi_errors.h"

namespace mouthpiece::js {

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

/**
 * A class may report its memory outside the JavaScript heap, for the garbage collector's schedule.
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
