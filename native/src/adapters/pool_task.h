// Work that takes longer than a thread with frames to send may stand still: done on a thread of
// libuv's pool, its end told by a promise.
#pragma once
#include <memory>
#include <string>

#include "adapters/napi_util.h"

namespace mouthpiece::js {

/** Made, settled and destroyed on the JavaScript thread; `run` alone is called on another one, and
 * must touch nothing that the first may touch meanwhile. */
class PoolTask {
 public:
  virtual ~PoolTask() = default;
  /** What it throws rejects the promise. */
  virtual void run() = 0;
  /** After `run`, whether it threw or not. @returns what resolves the promise if it did not */
  virtual napi_value settle(napi_env env, bool ok) = 0;

  /** @returns the promise */
  static napi_value start(napi_env env, const char* name, std::unique_ptr<PoolTask> task) {
    napi_value promise, label;
    check(env, napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &label));
    check(env, napi_create_promise(env, &task->deferred_, &promise));
    check(env, napi_create_async_work(env, nullptr, label, &execute, &complete, task.get(),
                                      &task->work_));
    check(env, napi_queue_async_work(env, task->work_));
    task.release();
    return promise;
  }

 private:
  static void execute(napi_env, void* data) {
    auto& task = *static_cast<PoolTask*>(data);
    try {
      task.run();
      task.has_run_ = true;
    } catch (const std::exception& problem) {
      task.error_ = problem.what();
    }
  }

  static void complete(napi_env env, napi_status, void* data) {
    const std::unique_ptr<PoolTask> task(static_cast<PoolTask*>(data));
    guard(env, [&]() -> napi_value {
      napi_delete_async_work(env, task->work_);
      const napi_value result = task->settle(env, task->has_run_);
      if (task->has_run_) {
        check(env, napi_resolve_deferred(env, task->deferred_, result));
        return nullptr;
      }
      // Nothing was run and nothing thrown: the thread is ending.
      napi_value message, problem;
      check(env, napi_create_string_utf8(env, task->error_.c_str(), NAPI_AUTO_LENGTH, &message));
      check(env, napi_create_error(env, nullptr, message, &problem));
      check(env, napi_reject_deferred(env, task->deferred_, problem));
      return nullptr;
    });
  }

  napi_deferred deferred_ = nullptr;
  napi_async_work work_ = nullptr;
  bool has_run_ = false;
  std::string error_ = "not done: the thread is ending";
};

}  // namespace mouthpiece::js
