// Exceptions of the adapters: the core's standard exceptions become JavaScript's.
//   std::invalid_argument: TypeError; std::out_of_range: RangeError; others: Error.
#pragma once
#include <node_api.h>

#include <new>
#include <stdexcept>

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

}  // namespace mouthpiece::js
