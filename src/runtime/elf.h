#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

// The parts of an ELF64 relocatable for x86-64, checked. Numbers for kinds and flags are those of
// <elf.h>. Everything views the bytes of the file.

namespace hone::elf {

struct Relocation {
  int64_t offset;  // in its section
  uint32_t type;   // R_X86_64_...
  uint32_t symbol;
  int64_t addend;
};

struct Section {
  std::string_view name;
  uint32_t type = 0;   // SHT_...
  uint64_t flags = 0;  // SHF_...
  int64_t size = 0;
  int64_t alignment = 1;                     // a power of two
  std::span<const std::byte> content;        // `size` bytes; none of SHT_NOBITS
  std::vector<Relocation> relocations = {};  // of memory sections; offset and type unchecked

  bool is_memory() const;  // SHF_ALLOC
};

struct Symbol {
  std::string_view name;
  uint8_t type = 0;      // STT_...
  uint8_t binding = 0;   // STB_...
  uint16_t section = 0;  // an index of sections, or a special one, from SHN_LORESERVE on; 0: none
  int64_t value = 0;     // offset in its section, at most the section's size
  int64_t size = 0;      // from there, inside of the section
};

struct File {
  std::vector<Section> sections;  // with the empty one at 0
  std::vector<Symbol> symbols;    // with the empty one at 0; relocations have indices of them
};

Result<File> read_file(std::span<const std::byte> bytes);

}  // namespace hone::elf
