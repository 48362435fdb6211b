// The JavaScript functions lockFile and isFileLocked (src/native/addon.ts).
#include <fcntl.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "adapters/adapters.h"
#include "adapters/napi_class.h"

namespace mouthpiece {

namespace {

// A lock of the whole file that belongs to the open file description (fcntl(2), F_OFD_SETLK): the
// kernel frees it with the descriptor, however the process ends. Unlike a process id in a file it
// means the same in every container that sees the file.
struct flock whole_file() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

int descriptor(const js::Args& args) {
  return int(args.integer(0, "descriptor", 0, std::numeric_limits<int>::max()));
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

napi_value boolean(napi_env env, bool value) {
  napi_value result;
  js::check(env, napi_get_boolean(env, value, &result));
  return result;
}

napi_value lock_file(const js::Args& args) {
  struct flock lock = whole_file();
  if (fcntl(descriptor(args), F_OFD_SETLK, &lock) == 0) {
    return boolean(args.env(), true);
  }
  if (errno != EAGAIN && errno != EACCES) {
    fail("Cannot lock the file");
  }
  return boolean(args.env(), false);
}

napi_value is_locked(const js::Args& args) {
  struct flock lock = whole_file();
  if (fcntl(descriptor(args), F_OFD_GETLK, &lock) != 0) {
    fail("Cannot read the locks of the file");
  }
  return boolean(args.env(), lock.l_type != F_UNLCK);
}

}  // namespace

void register_file_lock(napi_env env, napi_value exports) {
  js::define_function<lock_file>(env, exports, "lockFile");
  js::define_function<is_locked>(env, exports, "isFileLocked");
}

}  // namespace mouthpiece
