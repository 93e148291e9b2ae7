#include "target/cores.h"

#include "base/file.h"
#include "base/text.h"

#include <unistd.h>

#include <algorithm>
#include <set>

namespace hone {

std::vector<int> cpu_of_each_core() {
  std::vector<int> cpus;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {  // more CPUs than the set can hold
    for (int cpu = 0; cpu < std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)); ++cpu)
      cpus.push_back(cpu);
    return cpus;
  }
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const Result<std::string> siblings = read_file(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu), 4096);
    if (cores.insert(siblings.ok() ? *siblings : std::to_string(cpu)).second) cpus.push_back(cpu);
  }
  return cpus.empty() ? std::vector<int>{0} : cpus;
}

PinnedThread::PinnedThread(int cpu) {
  cpu_set_t set;
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof set, &set) != 0) return;
  before_ = set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

PinnedThread::~PinnedThread() {
  if (before_) sched_setaffinity(0, sizeof *before_, &*before_);
}

}  // namespace hone
