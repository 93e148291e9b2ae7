#include "base/instructions.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/cpuid.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::string_view kExtensionNames[] = {"avx512_bf16", "avx512_vnni", "avx512_fp16",
                                                "amx_bf16", "amx_int8"};
static_assert(std::size(kExtensionNames) == kExtensions.size());

template <class T, size_t n>
std::optional<T> from_name(std::string_view text, const std::array<T, n>& all) {
  for (T each : all)
    if (name(each) == text) return each;
  return std::nullopt;
}

#if defined(__x86_64__)

using namespace cpu;

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

#endif

}  // namespace

std::string_view name(Isa isa) { return split(kIsaWords, '|')[static_cast<size_t>(isa)]; }
std::optional<Isa> isa_from_name(std::string_view text) { return from_name(text, kIsas); }

std::string_view name(Extension extension) {
  return kExtensionNames[static_cast<size_t>(extension)];
}
std::optional<Extension> extension_from_name(std::string_view text) {
  return from_name(text, kExtensions);
}

#if defined(__x86_64__)

namespace {

// Linux lets a process use the tiles of AMX only once it has asked. False: refused.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // arch/x86/include/uapi/asm/prctl.h
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

Result<Instructions> host_instructions() {
  if (!has(kV2))
    return unsupported("this processor lacks instructions of the level {}", name(Isa::v2));
  const uint64_t saved = saved_registers();
  const auto saves = [saved](uint64_t mask) { return (saved & mask) == mask; };
  Instructions found;
  if (!saves(kYmm) || !has(kAvx2)) return found;
  found.isa = Isa::avx2;
  if (!saves(kZmm) || !has(kAvx512)) return found;
  found.isa = Isa::avx512;
  const bool has_tiles = saves(kTiles) && has(kAmxTile) && may_use_tiles();
  for (Extension e : kExtensions) {
    const bool tiles = e == Extension::amx_bf16 || e == Extension::amx_int8;
    if (has(kExtensionBits[static_cast<size_t>(e)]) && (!tiles || has_tiles))
      found.extensions.insert(e);
  }
  return found;
}

#else

Result<Instructions> host_instructions() {
  return unsupported("hone makes code for x86-64 alone, and this is another processor");
}

#endif

Status check_has(const Instructions& machine, const Instructions& needed, std::string_view who) {
  if (needed.isa > machine.isa)
    return unsupported("{} needs {}, this machine has {}", who, name(needed.isa),
                       name(machine.isa));
  for (Extension extension : kExtensions)
    if (needed.extensions.contains(extension) && !machine.extensions.contains(extension))
      return unsupported("{} needs {}, which this machine lacks", who, name(extension));
  return {};
}

}  // namespace hone
