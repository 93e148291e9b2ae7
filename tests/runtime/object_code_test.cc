#include "runtime/object_code.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/base/says_testing.h"
#include "tests/runtime/compile.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using tested::bytes_of;
using tested::compile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::shared_ptr<const ObjectCode>> load(
    std::string_view source, std::string_view options = "",
    std::span<const Import> imports = default_imports()) {
  return ObjectCode::load(bytes_of(*compile(source, options)), imports);
}

template <class Function>
Function* function(const ObjectCode& code, std::string_view name) {
  return reinterpret_cast<Function*>(const_cast<void*>(code.function(name)));
}

TEST(ObjectCode, FindsAndRunsFunctions) {
  const auto code = load(R"(extern "C" int one() { return 1; }
                            extern "C" int next(int x) { return x + one(); }
                            static int hidden() { return 3; }
                            extern "C" int use() { return hidden(); })")
                        .value();
  EXPECT_THAT(code->functions(), ElementsAre("next", "one", "use"));
  EXPECT_EQ(function<int(int)>(*code, "next")(41), 42);
  EXPECT_EQ(code->function("hidden"), nullptr);
}

// Constants for vectors, tables of jumps, tables of addresses, and writable data.
TEST(ObjectCode, RelocatesConstantsTablesAndData) {
  const auto code = load(R"(
      extern "C" float half(float x) { return x * 0.5f + 1.25f; }
      static int f0() { return 10; }
      static int f1() { return 20; }
      int (*const table[])() = {f0, f1};
      extern "C" int chosen(int i) { return table[i](); }
      const char* const names[] = {"a", "bc"};
      extern "C" const char* name(int i) { return names[i]; }
      static int counter;
      static int step = 5;
      extern "C" int count() { counter += step; step += 1; return counter; }
      extern "C" int which(int i) {
        switch (i) {
          case 0: return 7; case 1: return counter; case 2: return 99; case 3: return step;
          case 4: return 12345; case 5: return i * step; default: return -1; } })")
                        .value();
  EXPECT_EQ(function<float(float)>(*code, "half")(4), 3.25f);
  EXPECT_EQ(function<int(int)>(*code, "chosen")(0), 10);
  EXPECT_EQ(function<int(int)>(*code, "chosen")(1), 20);
  EXPECT_STREQ(function<const char*(int)>(*code, "name")(1), "bc");
  EXPECT_EQ(function<int()>(*code, "count")(), 5);
  EXPECT_EQ(function<int()>(*code, "count")(), 11);
  EXPECT_EQ(function<int(int)>(*code, "which")(4), 12345);
  EXPECT_EQ(function<int(int)>(*code, "which")(1), 11);
}

TEST(ObjectCode, CallsImportsDirectlyAndByTheirAddress) {
  constexpr std::string_view kSource = R"(
      extern "C" void* memcpy(void*, const void*, unsigned long);
      extern "C" void* memset(void*, int, unsigned long);
      extern "C" void copy(void* to, const void* from, unsigned long n) {
        memcpy(to, from, n);
        memset(to, 1, 2);
      }
      extern "C" void* address() { return (void*)&memcpy; })";
  for (std::string_view options : {"", "-fno-plt"}) {
    const auto code = load(kSource, options).value();
    char to[5] = {};
    function<void(void*, const void*, size_t)>(*code, "copy")(to, "wxyz", 5);
    EXPECT_STREQ(to, "\1\1yz");
    EXPECT_EQ(function<void*()>(*code, "address")(), reinterpret_cast<void*>(&std::memcpy));
  }
}

int twice(int x) { return 2 * x; }

TEST(ObjectCode, CallsOnlyWhatIsAllowed) {
  constexpr std::string_view kSource =
      "extern \"C\" int twice(int); extern \"C\" int f(int x) { return twice(x) + 1; }";
  const auto refused = load(kSource);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(refused.error().what(), says("'twice' ... functions"));

  const Import imports[] = {{"twice", reinterpret_cast<const void*>(&twice)}};
  EXPECT_EQ(function<int(int)>(*load(kSource, "", imports).value(), "f")(4), 9);
}

TEST(ObjectCode, RefusesWhatNeedsALinker) {
  const auto refusal = [](std::string_view source, std::string_view options = "") {
    const auto code = load(source, options);
    return code.ok() ? "loaded" : code.error().to_string();
  };
  EXPECT_THAT(refusal("extern \"C\" int* f() { static thread_local int x; return &x; }"),
              HasSubstr("thread-local data"));
  EXPECT_THAT(refusal("int g(); int x = g();"), HasSubstr("linker"));
  EXPECT_THAT(refusal("int x[9]; extern \"C\" int f(long i) { return x[i]; }", "-fno-pic"),
              HasSubstr("relocation of type 11"));
}

// ---- Bytes from anywhere -----------------------------------------------------------------------

// An object whose fields can be changed.
class Edited {
 public:
  Edited()
      : bytes_(*compile(R"(extern "C" void* memset(void*, int, unsigned long);
                           int data[4] = {1};
                           extern "C" int f(int* p, int i) {
                             memset(p, 0, 64); return data[i]; })")) {}

  template <class Record>
  void edit(size_t offset, const std::function<void(Record&)>& change) {
    Record record;
    std::memcpy(&record, &bytes_[offset], sizeof record);
    change(record);
    std::memcpy(&bytes_[offset], &record, sizeof record);
  }
  template <class Record>
  Record get(size_t offset) const {
    Record record;
    std::memcpy(&record, &bytes_[offset], sizeof record);
    return record;
  }
  size_t section(std::string_view name) const {  // the offset of its header
    const auto header = get<Elf64_Ehdr>(0);
    const auto names = get<Elf64_Shdr>(header.e_shoff + header.e_shstrndx * sizeof(Elf64_Shdr));
    for (size_t i = 0; i < header.e_shnum; ++i) {
      const size_t offset = header.e_shoff + i * sizeof(Elf64_Shdr);
      if (name == &bytes_[names.sh_offset + get<Elf64_Shdr>(offset).sh_name]) return offset;
    }
    ADD_FAILURE() << "no section " << name;
    return 0;
  }
  void header(const std::function<void(Elf64_Ehdr&)>& change) { edit(0, change); }
  void section(std::string_view name, const std::function<void(Elf64_Shdr&)>& change) {
    edit(section(name), change);
  }
  void relocation(size_t index, const std::function<void(Elf64_Rela&)>& change) {
    const auto table = get<Elf64_Shdr>(section(".rela.text"));
    edit(table.sh_offset + index * sizeof(Elf64_Rela), change);
  }
  void symbols(const std::function<void(Elf64_Sym&)>& change) {
    const auto table = get<Elf64_Shdr>(section(".symtab"));
    for (size_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i)
      edit(table.sh_offset + i * sizeof(Elf64_Sym), change);
  }

  std::string refusal() const {
    const auto code = ObjectCode::load(bytes_of(bytes_));
    return code.ok() ? "loaded" : code.error().to_string();
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

#define EXPECT_REFUSED(words, ...)                         \
  do {                                                     \
    Edited o;                                              \
    __VA_ARGS__;                                           \
    EXPECT_THAT(o.refusal(), says(words)) << #__VA_ARGS__; \
  } while (false)

TEST(HostileObject, UnchangedLoads) { EXPECT_EQ(Edited().refusal(), "loaded"); }

TEST(HostileObject, HeaderIsChecked) {
  EXPECT_THAT(ObjectCode::load({}).error().what(), says("0 bytes ... ELF"));
  EXPECT_REFUSED("ELF file", o.bytes()[1] = 'X');
  EXPECT_REFUSED("another machine", o.header([](auto& h) { h.e_machine = EM_AARCH64; }));
  EXPECT_REFUSED("another machine", o.header([](auto& h) { h.e_ident[EI_CLASS] = 1; }));
  EXPECT_REFUSED("of type 3", o.header([](auto& h) { h.e_type = ET_DYN; }));
  EXPECT_REFUSED("section headers ... 0 bytes", o.header([](auto& h) { h.e_shentsize = 0; }));
  EXPECT_REFUSED("table of sections", o.header([](auto& h) { h.e_shoff = ~uint64_t{0} - 8; }));
  EXPECT_REFUSED("table of sections", o.header([](auto& h) { h.e_shnum = 0xfe00; }));
  EXPECT_REFUSED("names of sections", o.header([](auto& h) { h.e_shstrndx = 0xffff; }));
  EXPECT_REFUSED("names of sections", o.header([](auto& h) { h.e_shnum = 0; }));
}

TEST(HostileObject, SectionsAreChecked) {
  EXPECT_REFUSED("'.text' has", o.section(".text", [](auto& s) { s.sh_size = 1 << 30; }));
  EXPECT_REFUSED("'.text' has", o.section(".text", [](auto& s) { s.sh_offset = ~uint64_t{0}; }));
  EXPECT_REFUSED("power of two", o.section(".text", [](auto& s) { s.sh_addralign = 24; }));
  EXPECT_REFUSED("power of two",
                 o.section(".text", [](auto& s) { s.sh_addralign = ~uint64_t{0}; }));
  EXPECT_REFUSED("more than a page", o.section(".text", [](auto& s) { s.sh_addralign = 8192; }));
  EXPECT_REFUSED("can be written", o.section(".text", [](auto& s) { s.sh_flags |= SHF_WRITE; }));
  EXPECT_REFUSED("code without content",
                 o.section(".text", [](auto& s) { s.sh_type = SHT_NOBITS; }));
  EXPECT_REFUSED("thread-local", o.section(".data", [](auto& s) { s.sh_flags |= SHF_TLS; }));
  EXPECT_REFUSED("needs more than 268435456 bytes", o.section(".data", [](auto& s) {
    s.sh_type = SHT_NOBITS;
    s.sh_size = uint64_t{1} << 40;
  }));
  EXPECT_REFUSED("has 18446744073709551615 bytes", o.section(".data", [](auto& s) {
    s.sh_type = SHT_NOBITS;
    s.sh_size = ~uint64_t{0};
  }));
  EXPECT_REFUSED("a name at", o.section(".text", [](auto& s) { s.sh_name = 1 << 20; }));
}

TEST(HostileObject, SymbolsAreChecked) {
  EXPECT_REFUSED("a name at", o.symbols([](auto& s) { s.st_name = 1 << 20; }));
  EXPECT_REFUSED("is in section 1000", o.symbols([](auto& s) { s.st_shndx = 1000; }));
  EXPECT_REFUSED("bytes at", o.symbols([](auto& s) { s.st_value = ~uint64_t{0}; }));
  EXPECT_REFUSED("bytes at", o.symbols([](auto& s) { s.st_size = ~uint64_t{0}; }));
  EXPECT_REFUSED("linker", o.symbols([](auto& s) { s.st_shndx = SHN_COMMON; }));
  EXPECT_REFUSED("names of symbols", o.section(".symtab", [](auto& s) { s.sh_link = 77; }));
  EXPECT_REFUSED("symbols", o.section(".symtab", [](auto& s) { s.sh_entsize = 0; }));
  EXPECT_REFUSED("two tables", o.section(".text", [](auto& s) { s.sh_type = SHT_SYMTAB; }));
  EXPECT_REFUSED("names symbol", o.section(".symtab", [](auto& s) { s.sh_size = 24; }));
}

TEST(HostileObject, RelocationsAreChecked) {
  EXPECT_REFUSED("names symbol", o.relocation(0, [](auto& r) { r.r_info |= uint64_t{9} << 40; }));
  EXPECT_REFUSED("a relocation at", o.relocation(0, [](auto& r) { r.r_offset = ~uint64_t{0}; }));
  EXPECT_REFUSED("a relocation of 4 bytes at", o.relocation(0, [&](auto& r) {
    r.r_offset = o.get<Elf64_Shdr>(o.section(".text")).sh_size - 3;
  }));
  EXPECT_REFUSED("relocation of type 200",
                 o.relocation(0, [](auto& r) { r.r_info = (r.r_info & ~0xffull) | 200; }));
  EXPECT_REFUSED("more than 32 bits",
                 o.relocation(0, [](auto& r) { r.r_addend = int64_t{1} << 40; }));
  EXPECT_REFUSED("more than 32 bits", o.relocation(0, [](auto& r) { r.r_addend = INT64_MIN; }));
  EXPECT_REFUSED("relocates section", o.section(".rela.text", [](auto& s) { s.sh_info = 99; }));
  EXPECT_REFUSED("malformed", o.section(".rela.text", [](auto& s) { s.sh_entsize = 23; }));
  EXPECT_REFUSED("malformed", o.section(".rela.text", [](auto& s) { s.sh_link = 1; }));
  EXPECT_REFUSED("without addends", o.section(".rela.text", [](auto& s) { s.sh_type = SHT_REL; }));
}

TEST(HostileObject, CutOrFlippedBytesNeverCrash) {
  const std::string whole = Edited().bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    (void)ObjectCode::load(bytes_of(whole.substr(0, size)));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(~flipped[i]);
    (void)ObjectCode::load(bytes_of(flipped));
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
