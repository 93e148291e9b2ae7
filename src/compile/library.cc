#include "compile/library.h"

#include <map>
#include <set>
#include <utility>

#include "base/checked_math.h"
#include "base/cpu_needs.h"
#include "base/text.h"
#include "compile/c_names.h"
#include "compile/elf_names.h"
#include "compile/library_header.h"
#include "compile/weight_pool.h"
#include "runtime/executable.h"

namespace hone {

namespace {

using image::Place;

constexpr int64_t kMostBytes = (int64_t{1} << 31) - (int64_t{1} << 26);  // of code and weights
constexpr size_t kCommandsOfAFunction = 256;  // compilers are slow with long ones

// The same for every library. L is its name.
constexpr std::string_view kProcessor = R"(
typedef void phase(void* const*, const int64_t*, void*, int64_t, int64_t);
typedef unsigned char byte;
#define HIDDEN __attribute__((visibility("hidden")))
#define PUBLIC __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- The processor ---- */

typedef struct cpu_bit { uint32_t leaf, subleaf, where, bit; } cpu_bit;

static uint64_t saved_registers(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int may_use_tiles(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

static int has(const cpu_bit* bits, size_t count, uint64_t saved, int tiles) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t r[4] = {0};
    if (__get_cpuid_max(bits[i].leaf & 0x80000000u, 0) < bits[i].leaf) return 0;
    __cpuid_count(bits[i].leaf, bits[i].subleaf, r[0], r[1], r[2], r[3]);
    if ((r[bits[i].where] >> bits[i].bit & 1) == 0) return 0;
  }
  if (saved != 0 && (saved_registers() & saved) != saved) return 0;
  return !tiles || may_use_tiles();
}

/* ---- Commands ---- */

static inline void copy(void* to, const void* from, size_t count) {
  if (to != from && count > 0) memmove(to, from, count);
}

)";

std::string number(int64_t value) {
  return value == INT64_MIN ? "(-9223372036854775807 - 1)" : fmt::format("{}", value);
}

class LibraryWriter {
 public:
  LibraryWriter(std::span<const HonecProgram> programs, std::string_view name,
                std::string_view version)
      : programs_(programs), version_(version) {
    out_.name = name;
  }

  Result<LibrarySources> write() {
    const Image& first = *programs_[0].image;
    for (const HonecProgram& program : programs_) {
      // Whatever is wrong with the image is found here, and not in C.
      HONE_TRY(check_image(*program.image));
      if (program.image->collectives > 0)
        return unsupported("a C library runs on one device; '{}' exchanges data with others",
                           program.image->name)
            .with_hint("a compiled model, -o FILE.honec, runs on several devices");
      needs_.push_back(needs_of(*program.image));
    }
    out_.header = library_header({.name = out_.name,
                                  .model = first.name,
                                  .version = version_,
                                  .inputs = first.inputs,
                                  .outputs = first.outputs,
                                  .donations = first.donations,
                                  .needs = needs_});
    std::string bodies;
    for (size_t i = 0; i < programs_.size(); ++i) bodies += program(i);
    if (weight_bytes_ + code_bytes_ > kMostBytes)
      return unsupported("a library has less than 2 GB, this one would have {}",
                         format_bytes(weight_bytes_ + code_bytes_))
          .with_hint("a compiled model, -o FILE.honec, has no such limit");
    out_.source = fmt::format(
        "#define _GNU_SOURCE\n#include \"{0}.h\"\n\n#include <cpuid.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n{1}"
        "extern const byte {0}__weights[] HIDDEN;\n#define W ((byte*){0}__weights)\n{2}{3}",
        out_.name, kProcessor, declarations_, bodies);
    interface(first);
    out_.weights.assign(weights_.all().begin(), weights_.all().end());
    return std::move(out_);
  }

 private:
  // ---- What programs share ---------------------------------------------------------------------

  int64_t weight(const Tensor& constant) {
    const size_t i = weights_.add(constant);
    if (i == weight_places_.size()) {
      weight_places_.push_back(round_up(weight_bytes_, LibrarySources::kAlignment));
      weight_bytes_ = weight_places_.back() + constant.byte_size();
    }
    return weight_places_[i];
  }

  // The beginning of its functions' names.
  std::string object(const image::Kernel& kernel) {
    const auto [known, is_new] = objects_.try_emplace(*kernel.object, objects_.size());
    const std::string prefix = fmt::format("{}__{}_", out_.name, known->second);
    if (is_new) {
      out_.objects.push_back(with_prefix(*kernel.object, prefix));
      code_bytes_ += static_cast<int64_t>(kernel.object->size());
    }
    for (const image::Phase& phase : kernel.phases)
      if (std::string name = prefix + phase.symbol; declared_.insert(name).second)
        declarations_ += fmt::format("extern phase {} HIDDEN;\n", name);
    return prefix;
  }

  // ---- A program -------------------------------------------------------------------------------

  std::string program(size_t index) {
    image_ = programs_[index].image;
    places_.clear();
    for (const Tensor& constant : image_->constants) places_.push_back(weight(constant));
    const int64_t arena = round_up(image_->arena_bytes, LibrarySources::kAlignment);
    int64_t scratch = 0;
    for (const image::Kernel& kernel : image_->kernels)
      scratch = std::max(scratch, kernel.scratch_bytes);
    workspaces_.push_back(std::max(arena + round_up(scratch, LibrarySources::kAlignment),
                                   LibrarySources::kAlignment));

    constexpr std::string_view kParameters = "byte* const* in, byte* const* out, byte* a, void* s";
    const image::Block& all = image_->commands;
    std::string text, calls;
    for (size_t from = 0; from < all.size(); from += kCommandsOfAFunction) {
      const std::string name = fmt::format("part{}_{}", index, from / kCommandsOfAFunction);
      text += fmt::format("\nstatic void {}({}) {{\n", name, kParameters);
      for (size_t i = from; i < std::min(all.size(), from + kCommandsOfAFunction); ++i)
        command(text, all[i], 1);
      text += "}\n";
      calls += fmt::format("  {}(in, out, a, s);\n", name);
    }
    return text + fmt::format(
                      "\nstatic void run{}(byte* const* in, byte* const* out, byte* a) {{\n"
                      "  void* const s = a + {};\n{}}}\n",
                      index, arena, calls);
  }

  std::string place(const Place& place) const {
    std::string text;
    switch (place.region) {
      case Place::Region::input: text = fmt::format("in[{}]", place.index); break;
      case Place::Region::output: text = fmt::format("out[{}]", place.index); break;
      case Place::Region::constant: text = fmt::format("W + {}", places_[place.index]); break;
      case Place::Region::arena: text = "a"; break;
    }
    if (place.offset != 0) text += fmt::format(" + {}", number(place.offset));
    for (const auto& [loop, stride] : place.steps)
      text += fmt::format(" + {} * t{}", number(stride), loop);
    return text;
  }

  void block(std::string& out, const image::Block& block, int depth) {
    for (const image::Command& one : block) command(out, one, depth);
  }

  void command(std::string& out, const image::Command& command, int depth) {
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    std::visit([&](const auto& kind) { write(out, kind, indent, depth); }, command.kind);
  }

  void write(std::string& out, const image::Launch& launch, const std::string& indent, int) {
    const image::Kernel& kernel = image_->kernels[launch.kernel];
    const std::string prefix = object(kernel);
    std::vector<std::string> buffers, symbols;
    for (const Place& buffer : launch.buffers) buffers.push_back(place(buffer));
    for (int64_t symbol : launch.symbols) symbols.push_back(number(symbol));
    out += fmt::format("{}{{\n{}  void* const b[] = {{{}}};\n", indent, indent,
                       buffers.empty() ? "0" : join(buffers, ", "));
    if (!symbols.empty())
      out += fmt::format("{}  static const int64_t v[] = {{{}}};\n", indent, join(symbols, ", "));
    for (const image::Phase& phase : kernel.phases)
      out += fmt::format("{}  {}{}(b, {}, s, 0, {});\n", indent, prefix, phase.symbol,
                         symbols.empty() ? "0" : "v", number(phase.trips));
    out += indent + "}\n";
  }
  void write(std::string& out, const image::Copy& copy, const std::string& indent, int) {
    out += fmt::format("{}copy({}, {}, {});\n", indent, place(copy.to), place(copy.from),
                       copy.from.bytes);
  }
  void write(std::string& out, const image::Branch& branch, const std::string& indent, int depth) {
    out += fmt::format("{}if (*({}) != 0) {{\n", indent, place(branch.condition));
    block(out, branch.on_true, depth + 1);
    out += indent + "} else {\n";
    block(out, branch.on_false, depth + 1);
    out += indent + "}\n";
  }
  void write(std::string& out, const image::While& loop, const std::string& indent, int depth) {
    out += indent + "for (;;) {\n";
    block(out, loop.test, depth + 1);
    out += fmt::format("{}  if (*({}) == 0) break;\n", indent, place(loop.condition));
    block(out, loop.body, depth + 1);
    out += indent + "}\n";
  }
  void write(std::string& out, const image::Repeat& repeat, const std::string& indent, int depth) {
    const std::string t = fmt::format("t{}", repeat.loop);
    out += repeat.reverse ? fmt::format("{0}for (int64_t {1} = {2} - 1; {1} >= 0; --{1}) {{\n",
                                        indent, t, number(repeat.trips))
                          : fmt::format("{0}for (int64_t {1} = 0; {1} < {2}; ++{1}) {{\n", indent,
                                        t, number(repeat.trips));
    block(out, repeat.body, depth + 1);
    out += indent + "}\n";
  }

  // Only models of several devices have these.
  void write(std::string&, const image::Start&, const std::string&, int) {}
  void write(std::string&, const image::Wait&, const std::string&, int) {}
  void write(std::string&, const image::Send&, const std::string&, int) {}
  void write(std::string&, const image::Receive&, const std::string&, int) {}
  void write(std::string& out, const image::DeviceIndex& index, const std::string& indent, int) {
    out += fmt::format("{}memset({}, 0, 8);\n", indent, place(index.to));
  }

  // ---- The functions of the header -------------------------------------------------------------

  void interface(const Image& image) {
    std::string& out = out_.source;
    std::string chosen, runs;
    for (size_t i = 0; i < needs_.size(); ++i) {
      const CpuNeeds needs = cpu_needs(needs_[i]);
      out += fmt::format("\nstatic const cpu_bit needs{}[] = {{", i);
      for (const CpuBit& bit : needs.bits)
        out += fmt::format("{{{}u, {}, {}, {}}}, ", bit.leaf, bit.subleaf, bit.where, bit.bit);
      out += "};\n";
      chosen += fmt::format("has(needs{0}, COUNT(needs{0}), {1}, {2}) ? {0} : ", i,
                            needs.saved_registers, needs.tiles ? 1 : 0);
      runs += fmt::format("    case {0}: run{0}(in, out, memory); break;\n", i);
    }
    out += fmt::format(
        "\n/* The program for this processor; -1: none. */\nstatic int chosen(void) {{\n"
        "  static int known = -2; /* nobody has asked */\n"
        "  int found = __atomic_load_n(&known, __ATOMIC_RELAXED);\n"
        "  if (found != -2) return found;\n"
        "  found = {}-1;\n"
        "  __atomic_store_n(&known, found, __ATOMIC_RELAXED);\n"
        "  return found;\n}}\n\n"
        "static int fits(byte* const* pointers, const size_t (*ports)[2], size_t count) {{\n"
        "  for (size_t i = 0; i < count; ++i)\n"
        "    if ((pointers[i] == 0 && ports[i][0] > 0) || (uintptr_t)pointers[i] % ports[i][1] != "
        "0)\n"
        "      return 0;\n"
        "  return 1;\n}}\n\n",
        chosen);
    const std::string upper = upper_case(out_.name);
    out += fmt::format(
        "PUBLIC int {0}_supported(void) {{ return chosen() < 0 ? {1}_UNSUPPORTED : {1}_OK; }}\n\n"
        "static const size_t workspaces[] = {{{2}}};\n\n"
        "PUBLIC size_t {0}_workspace_bytes(void) {{\n"
        "  const int program = chosen();\n"
        "  return program < 0 ? 0 : workspaces[program];\n}}\n\n"
        "PUBLIC int {0}_run(const {0}_inputs* inputs, const {0}_outputs* outputs, void* workspace) "
        "{{\n"
        "{3}{4}"
        "  const int program = chosen();\n"
        "  if (program < 0) return {1}_UNSUPPORTED;\n"
        "  if (inputs == 0 || outputs == 0 || (uintptr_t)workspace % {5} != 0)\n"
        "    return {1}_BAD_ARGUMENT;\n"
        "{6}{7}"
        "  if (!fits(in, in_ports, {8}) || !fits(out, out_ports, {9})) return {1}_BAD_ARGUMENT;\n"
        "  byte* const memory =\n"
        "      workspace != 0 ? (byte*)workspace : aligned_alloc({5}, workspaces[program]);\n"
        "  if (memory == 0) return {1}_NO_MEMORY;\n"
        "  switch (program) {{\n{10}  }}\n"
        "{11}"
        "  if (workspace == 0) free(memory);\n"
        "  return {1}_OK;\n}}\n",
        out_.name, upper, join(workspaces_, ", "), port_table("in", image.inputs),
        port_table("out", image.outputs), LibrarySources::kAlignment,
        pointers("in", "inputs", image.inputs), pointers("out", "outputs", image.outputs),
        image.inputs.size(), image.outputs.size(), runs, unused_bits(image));
  }

  // Bytes and alignment.
  static std::string port_table(std::string_view side, std::span<const image::Port> ports) {
    std::vector<std::string> rows;
    for (const image::Port& port : ports)
      rows.push_back(fmt::format("{{{}, {}}}", port.type.static_bytes(),
                                 std::max(1, bits(port.type.dtype()) / 8)));
    return fmt::format("  static const size_t {}_ports[][2] = {{{}}};\n", side,
                       rows.empty() ? "{0, 1}" : join(rows, ", "));
  }
  static std::string pointers(std::string_view side, std::string_view from,
                              std::span<const image::Port> ports) {
    std::vector<std::string> all;
    for (const std::string& field : c_fields(ports))
      all.push_back(fmt::format("(byte*){}->{}", from, field));
    return fmt::format("  byte* const {}[] = {{{}}};\n", side, all.empty() ? "0" : join(all, ", "));
  }
  // Equal outputs have equal bytes, as those of Executable.
  static std::string unused_bits(const Image& image) {
    std::string text;
    for (size_t i = 0; i < image.outputs.size(); ++i)
      if (const Type type = image.outputs[i].type;
          type.static_elements() > 0 && type.bits_of_last_byte() != std::byte{0xff})
        text += fmt::format("  out[{}][{}] &= {};\n", i, type.static_bytes() - 1,
                            static_cast<int>(type.bits_of_last_byte()));
    return text;
  }

  const std::span<const HonecProgram> programs_;
  const std::string_view version_;
  LibrarySources out_;
  std::vector<Instructions> needs_;  // by program
  std::vector<int64_t> workspaces_;  // by program
  WeightPool weights_;
  std::vector<int64_t> weight_places_;  // by weight of the pool
  int64_t weight_bytes_ = 0;
  std::map<std::string_view, size_t> objects_;
  std::set<std::string> declared_;
  std::string declarations_;
  int64_t code_bytes_ = 0;
  const Image* image_ = nullptr;  // of the program that is written
  std::vector<int64_t> places_;   // of its constants among the weights
};

}  // namespace

std::string LibrarySources::weights_source(std::string_view file) const {
  return fmt::format(
      "  .section .rodata\n  .balign {0}\n  .globl {1}__weights\n  .hidden {1}__weights\n"
      "  .type {1}__weights, @object\n{1}__weights:\n  .incbin {2}\n  .byte 0\n"
      "  .size {1}__weights, . - {1}__weights\n  .section .note.GNU-stack, \"\", @progbits\n",
      kAlignment, name, quoted(file));
}

Result<LibrarySources> library_sources(std::span<const HonecProgram> programs,
                                       std::string_view name, std::string_view version) {
  HONE_CHECK(!programs.empty(), "a library of no programs");
  return LibraryWriter(programs, name, version).write();
}

}  // namespace hone
