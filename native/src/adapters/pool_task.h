// Work that would block the JavaScript thread for too long (a frame is due every 33 ms): it runs on
// a thread of libuv's pool and settles a promise.
#pragma once
#include <memory>
#include <string>

#include "adapters/napi_errors.h"

namespace mouthpiece::js {

/**
 * A task is created, settled and destroyed on the JavaScript thread. Only `run` is called on a
 * thread of the pool; it must not touch anything that the JavaScript thread may touch meanwhile.
 */
class PoolTask {
 public:
  virtual ~PoolTask() = default;
  /** Does the work. An exception rejects the promise with its message. */
  virtual void run() = 0;
  /**
   * Called on the JavaScript thread after `run`.
   * @param ok whether `run` returned without an exception
   * @returns the value that the promise resolves with, if ok
   */
  virtual napi_value settle(napi_env env, bool ok) = 0;

  /** Queues the task. @param name for diagnostics @returns the promise */
  static napi_value start(napi_env env, const char* name, std::unique_ptr<PoolTask> task) {
    napi_value promise, label;
    check(env, napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &label));
    check(env, napi_create_promise(env, &task->deferred_, &promise));
    check(env, napi_create_async_work(env, nullptr, label, &execute, &complete, task.get(),
                                      &task->work_));
    check(env, napi_queue_async_work(env, task->work_));
    static_cast<void>(task.release());  // `complete` owns it from here on
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
      // `error_` keeps its first value when the task was cancelled: the thread is ending.
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
