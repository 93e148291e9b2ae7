#pragma once

#include "base/error.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace hone {

// The instructions that vector code may use. Each level includes the ones before it. v2 is SSE4.2
// and POPCNT; avx2 is x86-64-v3: AVX2, FMA, F16C, BMI; avx512 is x86-64-v4: F, BW, CD, DQ, VL.
enum class Isa : uint8_t { v2, avx2, avx512 };
inline constexpr std::array<Isa, 3> kIsas = {Isa::v2, Isa::avx2, Isa::avx512};
inline constexpr std::string_view kIsaWords = "x86-64-v2|avx2|avx512";  // of a command line
std::string_view name(Isa isa);                                         // "x86-64-v2"
std::optional<Isa> isa_from_name(std::string_view text);

// Beyond the level avx512, which each of them needs.
enum class Extension : uint8_t { avx512_bf16, avx512_vnni, avx512_fp16, amx_bf16, amx_int8 };
inline constexpr std::array<Extension, 5> kExtensions = {
    Extension::avx512_bf16, Extension::avx512_vnni, Extension::avx512_fp16, Extension::amx_bf16,
    Extension::amx_int8};
std::string_view name(Extension extension);  // "avx512_bf16"
std::optional<Extension> extension_from_name(std::string_view text);

class ExtensionSet {
 public:
  constexpr ExtensionSet() = default;
  constexpr ExtensionSet(std::initializer_list<Extension> all) {
    for (Extension e : all) insert(e);
  }
  constexpr bool contains(Extension e) const { return (mask_ & bit(e)) != 0; }
  constexpr bool empty() const { return mask_ == 0; }
  constexpr void insert(Extension e) { mask_ |= bit(e); }
  constexpr void erase(Extension e) { mask_ &= ~bit(e); }
  constexpr bool operator==(const ExtensionSet&) const = default;

 private:
  static constexpr uint32_t bit(Extension e) { return uint32_t{1} << static_cast<int>(e); }
  uint32_t mask_ = 0;
};

// The instructions that code needs, or that a machine has.
struct Instructions {
  Isa isa = Isa::v2;
  ExtensionSet extensions;

  bool operator==(const Instructions&) const = default;
};

// The instructions of this processor, as far as the operating system saves their registers and lets
// the process use them: it asks for those of AMX.
// Unsupported if the processor is not x86-64 of level v2 or higher.
Result<Instructions> host_instructions();

// Unsupported, naming the missing instructions, unless the machine has all that `who` needs.
Status check_has(const Instructions& machine, const Instructions& needed, std::string_view who);

}  // namespace hone
