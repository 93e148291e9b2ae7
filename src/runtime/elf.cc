#include "runtime/elf.h"

#include <elf.h>

#include <cstring>
#include <optional>

#include "base/checked_math.h"

namespace hone::elf {

bool Section::is_memory() const { return (flags & SHF_ALLOC) != 0; }

namespace {

constexpr size_t kMaxName = 4096;  // keeps the time for hostile names linear

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<File> read() {
    HONE_TRY(read_header());
    HONE_TRY(read_sections());
    HONE_TRY(read_symbols());
    HONE_TRY(read_relocations());
    return std::move(file_);
  }

 private:
  // Some unsigned fields of 64 bits, as bytes of the file.
  Result<std::span<const std::byte>> part(uint64_t offset, uint64_t size,
                                          std::string_view what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return bad_input("{} has {} bytes at offset {} of a file of {} bytes", what, size, offset,
                       bytes_.size());
    }
    return bytes_.subspan(offset, size);
  }

  // The table's records are copied: the file need not be aligned.
  template <class Record>
  static Record record(std::span<const std::byte> table, size_t index) {
    Record result;
    std::memcpy(&result, table.data() + index * sizeof(Record), sizeof(Record));
    return result;
  }

  static Result<std::string_view> string_at(std::span<const std::byte> table, uint32_t offset) {
    if (offset >= table.size()) {
      return bad_input("a name at {} of a string table of {} bytes", offset, table.size());
    }
    const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
    const size_t most = std::min(kMaxName, table.size() - offset);
    const void* end = std::memchr(begin, 0, most);
    if (end == nullptr) return bad_input("a name has no end within {} characters", most);
    return std::string_view(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
  }

  Status read_header();
  Status read_sections();
  Status read_section(const Elf64_Shdr& raw, std::span<const std::byte> names);
  Status read_symbols();
  Result<Symbol> read_symbol(const Elf64_Sym& raw, std::span<const std::byte> names) const;
  Status read_relocations();
  Status read_relocations(const Elf64_Shdr& raw, std::span<const std::byte> content);

  std::span<const std::byte> bytes_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> raw_;  // of sections
  uint32_t symbol_table_ = 0;    // its section; 0: there is none
  File file_;
};

Status Reader::read_header() {
  if (bytes_.size() < sizeof header_) {
    return bad_input("{} bytes are too few for an ELF file; its header alone has {}", bytes_.size(),
                     sizeof header_);
  }
  header_ = record<Elf64_Ehdr>(bytes_, 0);
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) return bad_input("it is not an ELF file");
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_machine != EM_X86_64) {
    return unsupported(
        "it is an ELF file for another machine (class {}, byte order {}, machine {})",
        header_.e_ident[EI_CLASS], header_.e_ident[EI_DATA], header_.e_machine);
  }
  if (header_.e_type != ET_REL) {
    return unsupported("it is an ELF file of type {}; a relocatable has type {}", header_.e_type,
                       ET_REL);
  }
  if (header_.e_shentsize != sizeof(Elf64_Shdr)) {
    return bad_input("its section headers have {} bytes, not {}", header_.e_shentsize,
                     sizeof(Elf64_Shdr));
  }
  return {};
}

Status Reader::read_sections() {
  const std::span<const std::byte> table = HONE_TRY(part(
      header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr), "the table of sections"));
  for (size_t i = 0; i < header_.e_shnum; ++i) raw_.push_back(record<Elf64_Shdr>(table, i));
  if (header_.e_shstrndx >= raw_.size() || raw_[header_.e_shstrndx].sh_type != SHT_STRTAB) {
    return bad_input("section {} of {} cannot hold the names of sections", header_.e_shstrndx,
                     raw_.size());
  }
  const Elf64_Shdr& names = raw_[header_.e_shstrndx];
  const std::span<const std::byte> text =
      HONE_TRY(part(names.sh_offset, names.sh_size, "the table of names"));
  for (const Elf64_Shdr& raw : raw_) HONE_TRY(read_section(raw, text));
  return {};
}

Status Reader::read_section(const Elf64_Shdr& raw, std::span<const std::byte> names) {
  Section section;
  if (raw.sh_type == SHT_NULL) {
    file_.sections.push_back(section);
    return {};
  }
  section.name = HONE_TRY(string_at(names, raw.sh_name));
  section.type = raw.sh_type;
  section.flags = raw.sh_flags;
  if (raw.sh_type != SHT_NOBITS) {
    const std::string what = fmt::format("section '{}'", section.name);
    section.content = HONE_TRY(part(raw.sh_offset, raw.sh_size, what));
  } else if (raw.sh_size > INT64_MAX) {
    return bad_input("section '{}' has {} bytes", section.name, raw.sh_size);
  }
  section.size = static_cast<int64_t>(raw.sh_size);
  const uint64_t alignment = std::max<uint64_t>(raw.sh_addralign, 1);
  if (alignment > INT64_MAX || !is_power_of_two(static_cast<int64_t>(alignment))) {
    return bad_input("section '{}' is aligned to {}, which is not a power of two", section.name,
                     alignment);
  }
  section.alignment = static_cast<int64_t>(alignment);
  file_.sections.push_back(std::move(section));
  return {};
}

Status Reader::read_symbols() {
  for (uint32_t i = 0; i < raw_.size(); ++i) {
    if (raw_[i].sh_type != SHT_SYMTAB) continue;
    if (symbol_table_ != 0) return bad_input("there are two tables of symbols");
    symbol_table_ = i;
  }
  if (symbol_table_ == 0) return {};
  const Elf64_Shdr& raw = raw_[symbol_table_];
  const std::span<const std::byte> table = file_.sections[symbol_table_].content;
  if (raw.sh_entsize != sizeof(Elf64_Sym) || table.size() % sizeof(Elf64_Sym) != 0) {
    return bad_input("{} bytes do not divide into symbols of {} bytes", table.size(),
                     sizeof(Elf64_Sym));
  }
  if (raw.sh_link >= raw_.size() || raw_[raw.sh_link].sh_type != SHT_STRTAB) {
    return bad_input("section {} cannot hold the names of symbols", raw.sh_link);
  }
  const std::span<const std::byte> names = file_.sections[raw.sh_link].content;
  for (size_t i = 0; i < table.size() / sizeof(Elf64_Sym); ++i)
    file_.symbols.push_back(HONE_TRY(read_symbol(record<Elf64_Sym>(table, i), names)));
  return {};
}

Result<Symbol> Reader::read_symbol(const Elf64_Sym& raw, std::span<const std::byte> names) const {
  Symbol symbol;
  if (raw.st_name != 0) symbol.name = HONE_TRY(string_at(names, raw.st_name));
  symbol.type = ELF64_ST_TYPE(raw.st_info);
  symbol.binding = ELF64_ST_BIND(raw.st_info);
  symbol.section = raw.st_shndx;
  if (symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE) return symbol;
  if (symbol.section >= file_.sections.size()) {
    return bad_input("symbol '{}' is in section {} of {}", symbol.name, symbol.section,
                     file_.sections.size());
  }
  const Section& section = file_.sections[symbol.section];
  const uint64_t most = static_cast<uint64_t>(section.size);
  if (raw.st_value > most || raw.st_size > most - raw.st_value) {
    return bad_input("symbol '{}' has {} bytes at {} of section '{}' of {} bytes", symbol.name,
                     raw.st_size, raw.st_value, section.name, section.size);
  }
  symbol.value = static_cast<int64_t>(raw.st_value);
  symbol.size = static_cast<int64_t>(raw.st_size);
  return symbol;
}

Status Reader::read_relocations() {
  size_t total = 0;  // bytes: tables that overlap could hold far more than the file
  for (size_t i = 0; i < raw_.size(); ++i) {
    const Elf64_Shdr& raw = raw_[i];
    if (raw.sh_type != SHT_RELA && raw.sh_type != SHT_REL) continue;
    const Section& self = file_.sections[i];
    if (raw.sh_info == 0 || raw.sh_info >= raw_.size()) {
      return bad_input("'{}' relocates section {} of {}", self.name, raw.sh_info, raw_.size());
    }
    if (!file_.sections[raw.sh_info].is_memory()) continue;
    if (raw.sh_type == SHT_REL) {
      return unsupported("'{}' has relocations without addends", self.name);
    }
    total += self.content.size();
    if (total > bytes_.size()) return bad_input("tables of relocations overlap");
    HONE_TRY(read_relocations(raw, self.content));
  }
  return {};
}

Status Reader::read_relocations(const Elf64_Shdr& raw, std::span<const std::byte> content) {
  Section& section = file_.sections[raw.sh_info];
  if (raw.sh_entsize != sizeof(Elf64_Rela) || content.size() % sizeof(Elf64_Rela) != 0 ||
      raw.sh_link != symbol_table_) {
    return bad_input("the relocations of '{}' are malformed", section.name);
  }
  for (size_t i = 0; i < content.size() / sizeof(Elf64_Rela); ++i) {
    const Elf64_Rela entry = record<Elf64_Rela>(content, i);
    const uint32_t symbol = static_cast<uint32_t>(ELF64_R_SYM(entry.r_info));
    if (symbol >= file_.symbols.size()) {
      return bad_input("a relocation of '{}' names symbol {} of {}", section.name, symbol,
                       file_.symbols.size());
    }
    if (entry.r_offset > static_cast<uint64_t>(section.size)) {
      return bad_input("a relocation at {} of section '{}' of {} bytes", entry.r_offset,
                       section.name, section.size);
    }
    section.relocations.push_back({static_cast<int64_t>(entry.r_offset),
                                   static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info)), symbol,
                                   entry.r_addend});
  }
  return {};
}

}  // namespace

Result<File> read_file(std::span<const std::byte> bytes) { return Reader(bytes).read(); }

}  // namespace hone::elf
