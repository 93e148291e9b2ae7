#include "runtime/object_code.h"

#include <elf.h>

#include <cstring>
#include <optional>

#include "base/checked_math.h"
#include "runtime/elf.h"

namespace hone {

std::span<const Import> default_imports() {
  static const Import imports[] = {
      {"memcpy", reinterpret_cast<const void*>(&std::memcpy)},
      {"memmove", reinterpret_cast<const void*>(&std::memmove)},
      {"memset", reinterpret_cast<const void*>(&std::memset)},
  };
  return imports;
}

// Lays the sections out one after another, by what may be done with them:
//   code      sections, then a jump for each import: jmp *[its slot]. Imports may be farther away
//             than the 31 bits of a call.
//   constants sections, then a slot for each symbol whose address is asked for: the 8 bytes of it
//   data      sections
// Each of the three begins on a page of its own.
class ObjectLoader {
 public:
  ObjectLoader(const elf::File& file, std::span<const Import> imports)
      : file_(file), imports_(imports) {}

  Result<std::shared_ptr<const ObjectCode>> load() {
    for (const elf::Section& section : file_.sections) HONE_TRY(choose(section));
    for (size_t i = 0; i < areas_.size(); ++i) HONE_TRY(examine(i));
    HONE_TRY(lay_out());
    code_->memory_ = HONE_TRY(Memory::map(total_));
    copy();
    for (size_t i = 0; i < areas_.size(); ++i) HONE_TRY(relocate(i));
    HONE_TRY(name_functions());
    HONE_TRY(code_->memory_.protect(0, ends_[0], Memory::Access::execute));
    HONE_TRY(code_->memory_.protect(ends_[0], ends_[1] - ends_[0], Memory::Access::read));
    return std::shared_ptr<const ObjectCode>(code_);
  }

 private:
  enum class Area : uint8_t { code, constants, data, none };
  static constexpr int64_t kBefore = 64;  // UBSan reads in front of a function that it calls
  static constexpr int64_t kJump = 8;
  static constexpr int64_t kSlot = 8;
  static constexpr int64_t kNowhere = -1;

  // The bytes that a symbol needs beside itself, as offsets in the memory.
  struct Extra {
    bool has_jump = false;
    int64_t jump = 0;
    int64_t slot = 0;
  };

  Status choose(const elf::Section& section);
  Status examine(size_t index);
  Status examine(const elf::Section& section, const elf::Relocation& relocation);
  Status lay_out();
  Result<int64_t> lay_out(Area area, int64_t begin);
  void copy();
  Status relocate(size_t index);
  Status relocate(const elf::Section& section, const elf::Relocation& relocation, int64_t place);
  Status name_functions();

  const Import* import(const elf::Symbol& symbol) const;
  uint64_t address(const elf::Symbol& symbol) const;
  uint64_t address(int64_t offset) const {
    return reinterpret_cast<uint64_t>(code_->memory_.data()) + static_cast<uint64_t>(offset);
  }
  template <class T>
  void write(int64_t offset, T value) {
    std::memcpy(code_->memory_.data() + offset, &value, sizeof value);
  }

  const elf::File& file_;
  std::span<const Import> imports_;
  std::vector<Area> areas_;           // of each section
  std::vector<int64_t> places_;       // of each section: offset in the memory, or kNowhere
  std::map<uint32_t, Extra> extras_;  // by symbol
  int64_t ends_[3] = {};              // of the areas, whole pages
  int64_t total_ = 0;
  std::shared_ptr<ObjectCode> code_{new ObjectCode};
};

Status ObjectLoader::choose(const elf::Section& section) {
  areas_.push_back(Area::none);
  // Nothing unwinds through kernels; notes are for linkers.
  const bool is_ignored = section.name == ".eh_frame" || section.type == SHT_NOTE;
  if (!section.is_memory() || is_ignored) return {};
  if (section.type != SHT_PROGBITS && section.type != SHT_NOBITS) {
    return unsupported("section '{}' is of type {}, which only a linker handles", section.name,
                       section.type);
  }
  if ((section.flags & SHF_TLS) != 0) {
    return unsupported("section '{}' holds thread-local data", section.name);
  }
  if ((section.flags & SHF_COMPRESSED) != 0) {
    return unsupported("section '{}' is compressed", section.name);
  }
  const bool is_code = (section.flags & SHF_EXECINSTR) != 0;
  const bool is_writable = (section.flags & SHF_WRITE) != 0;
  if (is_code && is_writable) {
    return unsupported("section '{}' is code that can be written", section.name);
  }
  if (is_code && section.type == SHT_NOBITS) {
    return bad_input("section '{}' is code without content", section.name);
  }
  if (section.alignment > Memory::kPage) {
    return unsupported("section '{}' is aligned to {}, more than a page of {}", section.name,
                       section.alignment, Memory::kPage);
  }
  const bool is_constant = !is_writable || section.name.starts_with(".data.rel.ro");
  areas_.back() = is_code ? Area::code : is_constant ? Area::constants : Area::data;
  return {};
}

// Finds what does not fit before there is memory, and what symbols need.
Status ObjectLoader::examine(size_t index) {
  if (areas_[index] == Area::none) return {};
  const elf::Section& section = file_.sections[index];
  for (const elf::Relocation& relocation : section.relocations)
    HONE_TRY(examine(section, relocation));
  return {};
}

Status ObjectLoader::examine(const elf::Section& section, const elf::Relocation& relocation) {
  int64_t width = 4;
  bool needs_slot = false;
  switch (relocation.type) {
    case R_X86_64_NONE: return {};
    case R_X86_64_64:
    case R_X86_64_PC64: width = 8; break;
    case R_X86_64_PC32:
    case R_X86_64_PLT32: break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: needs_slot = true; break;
    default:
      return unsupported("section '{}' has a relocation of type {}, which only a linker handles",
                         section.name, relocation.type);
  }
  if (section.type == SHT_NOBITS || relocation.offset > section.size - width) {
    return bad_input("a relocation of {} bytes at {} of section '{}' of {} bytes", width,
                     relocation.offset, section.name,
                     section.type == SHT_NOBITS ? 0 : section.size);
  }
  const elf::Symbol& symbol = file_.symbols[relocation.symbol];
  if (symbol.section >= SHN_LORESERVE || symbol.type == STT_TLS || symbol.type == STT_GNU_IFUNC) {
    return unsupported("symbol '{}' is of a kind that only a linker handles", symbol.name);
  }
  if (symbol.section == SHN_UNDEF) {
    if (import(symbol) == nullptr) {
      return unsupported("'{}' is not one of the functions that code may call", symbol.name);
    }
    if (width == 4) {  // by way of its slot
      extras_[relocation.symbol].has_jump |= !needs_slot;
    }
    return {};
  }
  if (areas_[symbol.section] == Area::none) {
    return bad_input("section '{}' refers to section '{}', which is not in memory", section.name,
                     file_.sections[symbol.section].name);
  }
  if (needs_slot) (void)extras_[relocation.symbol];
  return {};
}

Status ObjectLoader::lay_out() {
  places_.assign(areas_.size(), kNowhere);
  total_ = kBefore;
  for (Area area : {Area::code, Area::constants, Area::data}) {
    const size_t i = static_cast<size_t>(area);
    total_ = ends_[i] = round_up(HONE_TRY(lay_out(area, total_)), Memory::kPage);
  }
  return {};
}

Result<int64_t> ObjectLoader::lay_out(Area area, int64_t begin) {
  int64_t end = begin;
  const auto take = [&](int64_t size, int64_t alignment) -> Result<int64_t> {
    const int64_t place = round_up(end, alignment);  // both at most kMaxBytes and a page
    if (size > ObjectCode::kMaxBytes - place) {
      return over_limit("an object needs more than {} bytes of memory", ObjectCode::kMaxBytes);
    }
    end = place + size;
    return place;
  };
  for (size_t i = 0; i < areas_.size(); ++i) {
    const elf::Section& section = file_.sections[i];
    if (areas_[i] == area) places_[i] = HONE_TRY(take(section.size, section.alignment));
  }
  for (auto& [symbol, extra] : extras_) {
    if (area == Area::code && extra.has_jump) extra.jump = HONE_TRY(take(kJump, kJump));
    if (area == Area::constants) extra.slot = HONE_TRY(take(kSlot, kSlot));
  }
  return end;
}

void ObjectLoader::copy() {
  for (size_t i = 0; i < areas_.size(); ++i) {
    const std::span<const std::byte> content = file_.sections[i].content;
    if (areas_[i] == Area::none || content.empty()) continue;
    std::memcpy(code_->memory_.data() + places_[i], content.data(), content.size());
  }
  for (const auto& [symbol, extra] : extras_) {
    write(extra.slot, address(file_.symbols[symbol]));
    if (!extra.has_jump) continue;
    // ff 25 d32: jmp *[rip + d32], of 6 bytes; 0f 0b: ud2.
    write(extra.jump, uint16_t{0x25ff});
    write(extra.jump + 2, static_cast<int32_t>(extra.slot - (extra.jump + 6)));
    write(extra.jump + 6, uint16_t{0x0b0f});
  }
}

const Import* ObjectLoader::import(const elf::Symbol& symbol) const {
  for (const Import& import : imports_)
    if (import.name == symbol.name) return &import;
  return nullptr;
}

uint64_t ObjectLoader::address(const elf::Symbol& symbol) const {
  if (symbol.section == SHN_UNDEF) return reinterpret_cast<uint64_t>(import(symbol)->address);
  return address(places_[symbol.section] + symbol.value);
}

Status ObjectLoader::relocate(size_t index) {
  if (areas_[index] == Area::none) return {};
  const elf::Section& section = file_.sections[index];
  for (const elf::Relocation& relocation : section.relocations) {
    if (relocation.type == R_X86_64_NONE) continue;
    HONE_TRY(relocate(section, relocation, places_[index] + relocation.offset));
  }
  return {};
}

Status ObjectLoader::relocate(const elf::Section& section, const elf::Relocation& relocation,
                              int64_t place) {
  const elf::Symbol& symbol = file_.symbols[relocation.symbol];
  const uint64_t addend = static_cast<uint64_t>(relocation.addend);
  uint64_t value = 0;
  switch (relocation.type) {
    case R_X86_64_64: write(place, address(symbol) + addend); return {};
    case R_X86_64_PC64: write(place, address(symbol) + addend - address(place)); return {};
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
      value = symbol.section == SHN_UNDEF ? address(extras_.at(relocation.symbol).jump)
                                          : address(symbol);
      break;
    default: value = address(extras_.at(relocation.symbol).slot); break;
  }
  const int64_t distance = static_cast<int64_t>(value + addend - address(place));
  if (distance != static_cast<int32_t>(distance)) {
    return bad_input("section '{}' refers to a place {} bytes away, which needs more than 32 bits",
                     section.name, distance);
  }
  write(place, static_cast<int32_t>(distance));
  return {};
}

Status ObjectLoader::name_functions() {
  for (const elf::Symbol& symbol : file_.symbols) {
    const bool is_global = symbol.binding == STB_GLOBAL || symbol.binding == STB_WEAK;
    const bool is_defined = symbol.section != SHN_UNDEF && symbol.section < SHN_LORESERVE;
    if (symbol.type != STT_FUNC || !is_global || !is_defined) continue;
    if (areas_[symbol.section] != Area::code ||
        symbol.value == file_.sections[symbol.section].size) {
      return bad_input("function '{}' is not in a section of code", symbol.name);
    }
    const void* address = reinterpret_cast<const void*>(this->address(symbol));
    if (!code_->functions_.emplace(symbol.name, address).second) {
      return bad_input("there are two functions '{}'", symbol.name);
    }
  }
  return {};
}

Result<std::shared_ptr<const ObjectCode>> ObjectCode::load(std::span<const std::byte> bytes,
                                                           std::span<const Import> imports) {
  const elf::File file = HONE_TRY(elf::read_file(bytes));
  return ObjectLoader(file, imports).load();
}

const void* ObjectCode::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

std::vector<std::string_view> ObjectCode::functions() const {
  std::vector<std::string_view> names;
  for (const auto& [name, address] : functions_) names.push_back(name);
  return names;
}

}  // namespace hone
