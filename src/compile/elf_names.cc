#include "compile/elf_names.h"

#include <elf.h>

#include <cstring>

#include "base/error.h"

namespace hone {

namespace {

// A record of a file. Whoever loaded the file has seen that it is there.
template <class Record>
Record read(std::string_view file, uint64_t offset) {
  HONE_CHECK(offset <= file.size() && sizeof(Record) <= file.size() - offset, "offset {}", offset);
  Record record;
  std::memcpy(&record, file.data() + offset, sizeof record);
  return record;
}

template <class Record>
void write(std::string& file, uint64_t offset, const Record& record) {
  std::memcpy(file.data() + offset, &record, sizeof record);
}

uint64_t place_of_section(const Elf64_Ehdr& header, uint64_t index) {
  return header.e_shoff + index * sizeof(Elf64_Shdr);
}

}  // namespace

std::string with_prefix(std::string object, std::string_view prefix) {
  const auto header = read<Elf64_Ehdr>(object, 0);
  Elf64_Shdr symbols = {};
  for (uint64_t i = 0; i < header.e_shnum; ++i)
    if (const auto one = read<Elf64_Shdr>(object, place_of_section(header, i));
        one.sh_type == SHT_SYMTAB)
      symbols = one;
  if (symbols.sh_type != SHT_SYMTAB) return object;
  const uint64_t place_of_names = place_of_section(header, symbols.sh_link);
  auto names = read<Elf64_Shdr>(object, place_of_names);
  HONE_CHECK(names.sh_offset <= object.size() && names.sh_size <= object.size() - names.sh_offset,
             "names at {}", names.sh_offset);
  // The table of names moves behind all else, and grows there. Names of sections may be in it.
  std::string table = object.substr(names.sh_offset, names.sh_size);
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    auto symbol = read<Elf64_Sym>(object, symbols.sh_offset + at);
    const bool is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || !is_defined) continue;
    HONE_CHECK(symbol.st_name < table.size(), "a name at {}", symbol.st_name);
    const std::string name = table.c_str() + symbol.st_name;
    symbol.st_name = static_cast<Elf64_Word>(table.size());
    symbol.st_other = STV_HIDDEN;
    table.append(prefix).append(name).push_back('\0');
    write(object, symbols.sh_offset + at, symbol);
  }
  names.sh_offset = object.size();
  names.sh_size = table.size();
  write(object, place_of_names, names);
  return object + table;
}

}  // namespace hone
