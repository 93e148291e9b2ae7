#include "base/file.h"
#include "base/text.h"
#include "target/cgroup.h"
#include "target/cores.h"
#include "target/estimate.h"
#include "target/target.h"

#include <unistd.h>

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone {

#if defined(__x86_64__)

namespace {

enum Register : uint8_t { eax, ebx, ecx, edx };
using Registers = std::array<uint32_t, 4>;

// Zeros for a leaf that the processor does not have.
Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r = {};
  if (__get_cpuid_max(leaf & 0x80000000, nullptr) < leaf) return r;
  __cpuid_count(leaf, subleaf, r[eax], r[ebx], r[ecx], r[edx]);
  return r;
}

// ---- Instructions ------------------------------------------------------------------------------

struct Feature {
  uint32_t leaf;
  uint32_t subleaf;
  Register where;
  int bit;
};

// Intel SDM volume 2, CPUID; the levels are those of the x86-64 psABI.
constexpr Feature kV2[] = {{1, 0, ecx, 0},             // SSE3
                           {1, 0, ecx, 9},             // SSSE3
                           {1, 0, ecx, 13},            // CMPXCHG16B
                           {1, 0, ecx, 19},            // SSE4.1
                           {1, 0, ecx, 20},            // SSE4.2
                           {1, 0, ecx, 23},            // POPCNT
                           {0x80000001, 0, ecx, 0}};   // LAHF
constexpr Feature kAvx2[] = {{1, 0, ecx, 12},          // FMA
                             {1, 0, ecx, 22},          // MOVBE
                             {1, 0, ecx, 27},          // OSXSAVE
                             {1, 0, ecx, 28},          // AVX
                             {1, 0, ecx, 29},          // F16C
                             {0x80000001, 0, ecx, 5},  // LZCNT
                             {7, 0, ebx, 3},           // BMI1
                             {7, 0, ebx, 5},           // AVX2
                             {7, 0, ebx, 8}};          // BMI2
constexpr Feature kAvx512[] = {{7, 0, ebx, 16},        // F
                               {7, 0, ebx, 17},        // DQ
                               {7, 0, ebx, 28},        // CD
                               {7, 0, ebx, 30},        // BW
                               {7, 0, ebx, 31}};       // VL
constexpr Feature kAmxTile = {7, 0, edx, 24};

// Of an Extension, by its number.
constexpr Feature kExtensionBits[] = {
    {7, 1, eax, 5}, {7, 0, ecx, 11}, {7, 0, edx, 23}, {7, 0, edx, 22}, {7, 0, edx, 25}};
static_assert(std::size(kExtensionBits) == kExtensions.size());

// Registers that the operating system saves, as bits of XCR0.
constexpr uint64_t kYmm = 0b110, kZmm = 0b1110'0110, kTiles = 0b11 << 17;

bool has(const Feature& f) { return (cpuid(f.leaf, f.subleaf)[f.where] >> f.bit & 1) != 0; }
template <size_t n>
bool has(const Feature (&all)[n]) {
  return std::all_of(std::begin(all), std::end(all), [](const Feature& f) { return has(f); });
}

uint64_t saved_registers() {
  if (!has({1, 0, ecx, 27})) return 0;  // OSXSAVE: XGETBV exists
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

void detect_instructions(Target& target) {
  const uint64_t saved = saved_registers();
  const auto saves = [saved](uint64_t mask) { return (saved & mask) == mask; };
  target.isa = Isa::v2;
  if (!saves(kYmm) || !has(kAvx2)) return;
  target.isa = Isa::avx2;
  if (!saves(kZmm) || !has(kAvx512)) return;
  target.isa = Isa::avx512;
  for (Extension e : kExtensions) {
    const bool tiles = e == Extension::amx_bf16 || e == Extension::amx_int8;
    if (has(kExtensionBits[static_cast<size_t>(e)]) && (!tiles || (saves(kTiles) && has(kAmxTile))))
      target.extensions.insert(e);
  }
}

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
  if (!has(kV2))
    return unsupported("this processor lacks instructions of the level {}", name(Isa::v2));
  Target target;
  target.cpu = cpu_name();
  detect_instructions(target);

  const Result<std::string> groups = read_file("/proc/self/cgroup", 1 << 16);
  const std::string membership = groups.ok() ? *groups : "";
  constexpr const char* kGroups = "/sys/fs/cgroup";
  target.cores = std::min(static_cast<int64_t>(cpu_of_each_core().size()), kMaxTargetCores);
  if (std::optional<double> cpus = cgroup_cpus(membership, kGroups))
    target.cores = std::clamp<int64_t>(saturating_cast<int64_t>(*cpus), 1, target.cores);
  target.caches = detect_caches(target.cores);

  constexpr int64_t kMiB = 1 << 20;
  target.memory_bytes = std::max<int64_t>(1, sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (std::optional<int64_t> bytes = cgroup_memory(membership, kGroups))
    target.memory_bytes = std::min(target.memory_bytes, *bytes);
  target.memory_bytes = std::clamp(target.memory_bytes / kMiB * kMiB, kMiB, kMaxTargetBytes);

  target.name = default_name(target);
  estimate_rates(target);
  return target;
}

#else

Result<Target> host_target() {
  return unsupported("hone makes code for x86-64 alone, and this is another processor");
}

#endif

}  // namespace hone
