// Linux threads: CPU affinity, scheduling, names and CPU time.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mouthpiece {

/**
 * Restricts the calling thread, and threads that it starts later, to `cpus` (sched_setaffinity(2)).
 * @param cpus CPU numbers from 0 to 8191, at least one
 * @throws std::system_error with errno's text
 */
void pin_thread(std::span<const int32_t> cpus);

/**
 * @returns the CPUs in the affinity mask of the process's main thread, ascending; a cpuset cgroup
 * narrows that mask
 * @throws std::system_error with errno's text
 */
std::vector<int> allowed_cpus();

/**
 * Gives the calling thread the lowest real-time priority (SCHED_RR), so that it runs before every
 * ordinary thread on its CPU. Threads that it starts are ordinary (SCHED_RESET_ON_FORK). The kernel
 * leaves 5 % of each second to ordinary threads (sched(7), sched_rt_runtime_us).
 * @throws std::system_error; EPERM without CAP_SYS_NICE or a limit on rtprio
 */
void make_thread_realtime();

/** Names the calling thread for `top -H`. Linux keeps the first 15 bytes. */
void set_thread_name(const std::string& name);

/** @returns the kernel's id of the calling thread, as in /proc/self/task */
int thread_id();

/** @returns the CPU time of the calling thread, milliseconds */
double thread_cpu_ms();

}  // namespace mouthpiece
