#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/hash.h"

// How the bytes of a compiled model lie in its file: docs/formats/honec.md. Whoever reads and
// whoever writes such files shares this.

namespace hone::honec {

inline constexpr char kMagic[8] = {0x7f, 'h', 'o', 'n', 'e', 'c', '\r', '\n'};
// The version of the format, and of the calls of its code (kernel_abi.h). A file with code for GPUs
// has a version of its own, and one with a mesh, too: an older hone refuses both by their numbers.
// Version 6 was code for GPUs that does not say how its buffers lie. Code for GPUs of one
// capability alone gives a file a higher version than other code for GPUs has. With machine code
// for GPUs beside PTX it is higher again.
inline constexpr uint32_t kVersion = 5;
inline constexpr uint32_t kMeshVersion = 7;
inline constexpr uint32_t kGpuVersion = 8;
inline constexpr uint32_t kExactGpuVersion = 9;
inline constexpr uint32_t kCubinVersion = 10;
constexpr bool has_version(uint32_t version) {
  return version == kVersion || (version >= kMeshVersion && version <= kCubinVersion);
}

// In the order metadata, segments or division, program, cubins, code, weights. `segments` are there
// if the model has several, `division` if several devices divide its batch, `cubins` if some PTX
// has machine code, too. There is one `program` for
// each unit, choice of sizes and level of instructions, the best level first; of all others just
// one. A `gpu_program` is one for a GPU and later ones, an `exact_gpu_program` for GPUs of its
// capability alone.
enum class Kind : uint32_t {
  metadata = 1,
  program,
  code,
  weights,
  segments,
  division,
  gpu_program,
  exact_gpu_program,
  cubins
};

struct Header {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t checksum = 0;  // header_checksum()
};

struct Section {
  uint32_t kind = 0;
  uint32_t zero = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // of the bytes; of weights 0: each has its own in the metadata
};
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Header) == 32 && sizeof(Section) == 32);

inline constexpr uint32_t kMaxSections = 4096;
inline constexpr int64_t kMaxSectionBytes = int64_t{1} << 30;  // of all but weights
inline constexpr int kMaxDepth = 64;  // of commands in commands, and of steps in steps

// Objects and weights begin at multiples of this in their sections, and sections in the file;
// weights on a page.
inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t kPage = 4096;
constexpr int64_t alignment(Kind kind) { return kind == Kind::weights ? kPage : kAlignment; }

// Covers the header without this number, and of the table of sections behind it.
inline uint64_t header_checksum(Header header, std::span<const std::byte> table) {
  header.checksum = 0;
  const uint64_t first = hash_bytes(std::as_bytes(std::span(&header, 1)));
  return hash_bytes(table, first);
}

}  // namespace hone::honec
