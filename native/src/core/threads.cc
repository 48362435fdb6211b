// Linux threads (see threads.h).
#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <system_error>

namespace mouthpiece {

namespace {

// A dynamic set, because the fixed cpu_set_t ends at 1024 CPUs.
constexpr int MAX_CPUS = 8192;
using CpuSet = std::unique_ptr<cpu_set_t, decltype([](cpu_set_t* set) { CPU_FREE(set); })>;
const size_t SET_BYTES = CPU_ALLOC_SIZE(MAX_CPUS);

CpuSet empty_set() {
  CpuSet set(CPU_ALLOC(MAX_CPUS));
  if (!set) {
    throw std::bad_alloc();
  }
  CPU_ZERO_S(SET_BYTES, set.get());
  return set;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

void pin_thread(std::span<const int32_t> cpus) {
  const CpuSet set = empty_set();
  std::string names;
  for (const int32_t cpu : cpus) {
    CPU_SET_S(size_t(cpu), SET_BYTES, set.get());
    names += (names.empty() ? "" : ", ") + std::to_string(cpu);
  }
  if (sched_setaffinity(0, SET_BYTES, set.get()) != 0) {
    fail("Cannot pin the thread to CPU " + names);
  }
}

std::vector<int> allowed_cpus() {
  const CpuSet set = empty_set();
  // Of the process, not of the calling thread: a pinned worker must get the same answer as the main
  // thread.
  if (sched_getaffinity(getpid(), SET_BYTES, set.get()) != 0) {
    fail("Cannot read the CPU affinity");
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
    if (CPU_ISSET_S(size_t(cpu), SET_BYTES, set.get())) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

void make_thread_realtime() {
  sched_param param{};
  param.sched_priority = sched_get_priority_min(SCHED_RR);
  if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) != 0) {
    fail("Cannot give the thread a real-time priority");
  }
}

void set_thread_name(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

int thread_id() {
  return int(syscall(SYS_gettid));
}

double thread_cpu_ms() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

}  // namespace mouthpiece
