// Threads as Linux sees them: which CPUs they may use, which they did use and for how long.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mouthpiece {

/** Keeps the calling thread, and those it starts from now on, on these CPUs (0..8191, not empty).
 * @throws std::system_error with errno's text. */
void pin_thread(std::span<const int32_t> cpus);

/** CPUs in the affinity mask of the process's main thread, ascending (a cpuset cgroup narrows that
 * mask). */
std::vector<int> allowed_cpus();

/**
 * Lets the calling thread run before every ordinary one that wants the same CPU (SCHED_RR, the
 * least of the real-time priorities; what it starts is ordinary again). The kernel keeps a
 * twentieth of each second for the others. @throws std::system_error, EPERM without CAP_SYS_NICE or
 * a limit on rtprio.
 */
void make_thread_realtime();

/** Names the calling thread as `top -H` shows it; cut to 15 bytes. */
void set_thread_name(const std::string& name);

/** The kernel's id of the calling thread: its folder under /proc/self/task. */
int thread_id();

/** CPU time of the calling thread in milliseconds. */
double thread_cpu_ms();

}  // namespace mouthpiece
