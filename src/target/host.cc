#include "base/cpuid.h"
#include "base/file.h"
#include "base/text.h"
#include "target/cgroup.h"
#include "target/cores.h"
#include "target/estimate.h"
#include "target/target.h"

#include <unistd.h>

#include <algorithm>

namespace hone {

#if defined(__x86_64__)

namespace {

using namespace cpu;

std::string cpu_name() {
  std::string text;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf)
    for (uint32_t part : cpuid(leaf))
      for (int shift = 0; shift < 32; shift += 8) {
        const char c = static_cast<char>(part >> shift & 0xff);
        if (c >= ' ' && c <= '~') text += c;
      }
  return join(split_words(text), " ");
}

// ---- Cores, caches, memory ---------------------------------------------------------------------

// Intel's leaf 4; AMD has the same in 0x8000001D.
std::vector<CacheLevel> caches_of_leaf(uint32_t leaf, int64_t cores) {
  const int64_t threads = std::max<int64_t>(1, cpuid(0xb)[ebx] & 0xffff);  // of one core
  std::vector<CacheLevel> caches;
  for (uint32_t i = 0; caches.size() < kMaxCacheLevels; ++i) {
    const Registers r = cpuid(leaf, i);
    const uint32_t type = r[eax] & 31;  // 0: no more; 1: data, 2: instructions, 3: both
    if (type == 0 || i == 16) break;
    if (type == 2) continue;
    const int64_t line = (r[ebx] & 0xfff) + 1, partitions = (r[ebx] >> 12 & 0x3ff) + 1;
    const int64_t ways = (r[ebx] >> 22) + 1, sets = int64_t{r[ecx]} + 1;
    const int64_t sharing = ((r[eax] >> 14 & 0xfff) + 1 + threads - 1) / threads;
    const int64_t bytes = line * partitions * ways * sets;
    if (bytes > kMaxTargetBytes || (!caches.empty() && bytes <= caches.back().bytes)) continue;
    caches.push_back({bytes, std::clamp<int64_t>(sharing, 1, cores), 0});
  }
  return caches;
}

std::vector<CacheLevel> detect_caches(int64_t cores) {
  for (uint32_t leaf : {4U, 0x8000001dU})
    if (std::vector<CacheLevel> caches = caches_of_leaf(leaf, cores); !caches.empty())
      return caches;
  return {{32 << 10, 1, 0}, {1 << 20, 1, 0}};  // not said: what any server core has
}

}  // namespace

Result<Target> host_target() {
  const Instructions instructions = HONE_TRY( host_instructions());
  Target target;
  target.cpu = cpu_name();
  target.isa = instructions.isa;
  target.extensions = instructions.extensions;

  const Result<std::string> groups = read_file("/proc/self/cgroup", 1 << 16);
  const std::string membership = groups.ok() ? *groups : "";
  constexpr const char* kGroups = "/sys/fs/cgroup";
  target.cores = std::min(static_cast<int64_t>(cpu_of_each_core().size()), kMaxTargetCores);
  if (std::optional<double> cpus = cgroup_cpus(membership, kGroups))
    target.cores = std::clamp<int64_t>(saturating_cast<int64_t>(*cpus), 1, target.cores);
  target.caches = detect_caches(target.cores);

  constexpr int64_t kMiB = 1 << 20;
  target.memory_bytes = std::clamp(usable_memory() / kMiB * kMiB, kMiB, kMaxTargetBytes);

  target.name = default_name(target);
  estimate_rates(target);
  return target;
}

#else

Result<Target> host_target() { return host_instructions().error(); }

#endif

}  // namespace hone
