#include "base/instructions.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/cpu_needs.h"
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

enum Register : uint8_t { eax, ebx, ecx, edx };

// Intel SDM volume 2, CPUID; the levels are those of the x86-64 psABI.
constexpr CpuBit kV2[] = {{1, 0, ecx, 0},                              // SSE3
                          {1, 0, ecx, 9},                              // SSSE3
                          {1, 0, ecx, 13},                             // CMPXCHG16B
                          {1, 0, ecx, 19},                             // SSE4.1
                          {1, 0, ecx, 20},                             // SSE4.2
                          {1, 0, ecx, 23},                             // POPCNT
                          {0x80000001, 0, ecx, 0}};                    // LAHF
constexpr CpuBit kSavesRegisters = {1, 0, ecx, 27};                    // OSXSAVE: XGETBV exists
constexpr CpuBit kAvx2[] = {{1, 0, ecx, 12},                           // FMA
                            {1, 0, ecx, 22},                           // MOVBE
                            kSavesRegisters,         {1, 0, ecx, 28},  // AVX
                            {1, 0, ecx, 29},                           // F16C
                            {0x80000001, 0, ecx, 5},                   // LZCNT
                            {7, 0, ebx, 3},                            // BMI1
                            {7, 0, ebx, 5},                            // AVX2
                            {7, 0, ebx, 8}};                           // BMI2
constexpr CpuBit kAvx512[] = {{7, 0, ebx, 16},                         // F
                              {7, 0, ebx, 17},                         // DQ
                              {7, 0, ebx, 28},                         // CD
                              {7, 0, ebx, 30},                         // BW
                              {7, 0, ebx, 31}};                        // VL
constexpr CpuBit kAmxTile = {7, 0, edx, 24};

// The bit of an Extension, by its number.
constexpr CpuBit kExtensionBits[] = {
    {7, 1, eax, 5}, {7, 0, ecx, 11}, {7, 0, edx, 23}, {7, 0, edx, 22}, {7, 0, edx, 25}};
static_assert(std::size(kExtensionBits) == kExtensions.size());

bool is_of_tiles(Extension e) { return e == Extension::amx_bf16 || e == Extension::amx_int8; }

// Registers that the operating system saves, as bits of XCR0.
constexpr uint64_t kYmm = 0b110, kZmm = 0b1110'0110, kTiles = 0b11 << 17;

#if defined(__x86_64__)

bool has(const CpuBit& f) {
  return (cpu::cpuid(f.leaf, f.subleaf)[static_cast<size_t>(f.where)] >> f.bit & 1) != 0;
}
template <size_t n>
bool has(const CpuBit (&all)[n]) {
  return std::all_of(std::begin(all), std::end(all), [](const CpuBit& f) { return has(f); });
}

uint64_t saved_registers() {
  if (!has(kSavesRegisters)) return 0;
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
    if (has(kExtensionBits[static_cast<size_t>(e)]) && (!is_of_tiles(e) || has_tiles))
      found.extensions.insert(e);
  }
  return found;
}

#else

Result<Instructions> host_instructions() {
  return unsupported("this processor is not an x86-64, and hone makes code for x86-64 only");
}

#endif

CpuNeeds cpu_needs(const Instructions& instructions) {
  CpuNeeds needs;
  const auto add = [&](std::span<const CpuBit> bits) {
    needs.bits.insert(needs.bits.end(), bits.begin(), bits.end());
  };
  add(kV2);
  if (instructions.isa >= Isa::avx2) {
    add(kAvx2);
    needs.saved_registers |= kYmm;
  }
  if (instructions.isa >= Isa::avx512) {
    add(kAvx512);
    needs.saved_registers |= kZmm;
  }
  for (Extension e : kExtensions) {
    if (!instructions.extensions.contains(e)) continue;
    needs.bits.push_back(kExtensionBits[static_cast<size_t>(e)]);
    needs.tiles |= is_of_tiles(e);
  }
  if (needs.tiles) {
    needs.bits.push_back(kAmxTile);
    needs.saved_registers |= kTiles;
  }
  return needs;
}

Instructions both(const Instructions& a, const Instructions& b) {
  Instructions all = {std::max(a.isa, b.isa), a.extensions};
  for (Extension extension : kExtensions)
    if (b.extensions.contains(extension)) all.extensions.insert(extension);
  return all;
}

Status check_has(const Instructions& machine, const Instructions& needed, std::string_view who) {
  if (needed.isa > machine.isa)
    return unsupported("{} needs {}, but this machine has {}", who, name(needed.isa),
                       name(machine.isa));
  for (Extension extension : kExtensions)
    if (needed.extensions.contains(extension) && !machine.extensions.contains(extension))
      return unsupported("{} needs {}, which this machine lacks", who, name(extension));
  return {};
}

}  // namespace hone
