#include "compile/library_header.h"

#include "base/text.h"
#include "compile/c_names.h"

namespace hone {

namespace {

// The type of an element, or of the bytes that several share.
std::string_view c_type(DType type) {
  switch (type) {
    case DType::f64: return "double";
    case DType::f32: return "float";
    case DType::i64: return "int64_t";
    case DType::i32: return "int32_t";
    case DType::i16: return "int16_t";
    case DType::i8: return "int8_t";
    case DType::u64: return "uint64_t";
    case DType::u32: return "uint32_t";
    default: return bits(type) == 16 ? "uint16_t" : "uint8_t";
  }
}

int64_t c_count(Type type) {
  return bits(type.dtype()) < 8 ? type.static_bytes() : type.static_elements();
}

std::string about(const image::Port& port, std::string_view field) {
  std::string text = port.type.to_string();
  if (bits(port.type.dtype()) < 8) text += ", several elements to a byte, the first one lowest";
  if (port.name != field) text += ": " + c_comment(port.name);
  return text;
}

class Header {
 public:
  explicit Header(const LibraryInterface& library)
      : library_(library),
        upper_(upper_case(library.name)),
        inputs_(c_fields(library.inputs)),
        outputs_(c_fields(library.outputs)) {}

  std::string write() {
    text_ = fmt::format(
        "/* The model {}, compiled by hone {}. Link with lib{}.so or lib{}.a; nothing else is\n"
        " * needed.\n *\n{} */\n",
        c_comment(library_.model), c_comment(library_.version), library_.name, library_.name,
        example());
    text_ += fmt::format(
        "#ifndef {0}_H\n#define {0}_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        upper_);
    codes();
    ports("inputs", library_.inputs, inputs_, "const ");
    ports("outputs", library_.outputs, outputs_, "");
    counts("input", library_.inputs, inputs_);
    counts("output", library_.outputs, outputs_);
    functions();
    text_ += "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    return std::move(text_);
  }

 private:
  static std::string fields_text(std::span<const std::string> fields) {
    if (fields.empty()) return "{0}";
    return fmt::format("{{.{0} = {0}{1}}}", fields[0], fields.size() > 1 ? ", ..." : "");
  }
  std::string example() const {
    return fmt::format(
        " *   {0}_inputs in = {2};\n *   {0}_outputs out = {3};\n"
        " *   if ({0}_run(&in, &out, NULL) != {1}_OK) return 1;\n",
        library_.name, upper_, fields_text(inputs_), fields_text(outputs_));
  }

  void codes() {
    std::vector<std::string> levels;
    for (const Instructions& needs : library_.needs) {
      std::string level(name(needs.isa));
      for (Extension extension : kExtensions)
        if (needs.extensions.contains(extension)) level += fmt::format("+{}", name(extension));
      levels.push_back(std::move(level));
    }
    text_ += fmt::format(
        "/* What functions return. */\n"
        "enum {{\n"
        "  {0}_OK = 0,\n"
        "  {0}_BAD_ARGUMENT = 2, /* a null pointer, or one that is not aligned to its elements */\n"
        "  {0}_UNSUPPORTED = 4,  /* the processor has not the instructions of\n"
        "                           {1}{2} */\n"
        "  {0}_NO_MEMORY = 5\n"
        "}};\n\n",
        upper_, levels.size() > 1 ? "any of " : "", join(levels, ", "));
  }

  void ports(std::string_view side, std::span<const image::Port> ports,
             std::span<const std::string> fields, std::string_view constness) {
    text_ += fmt::format("typedef struct {}_{} {{\n", library_.name, side);
    for (size_t i = 0; i < ports.size(); ++i)
      text_ += fmt::format("  {}{}* {}; /* {} */\n", constness, c_type(ports[i].type.dtype()),
                           fields[i], about(ports[i], fields[i]));
    if (ports.empty()) text_ += fmt::format("  const void* none; /* there are no {} */\n", side);
    text_ += fmt::format("}} {}_{};\n\n", library_.name, side);
  }

  void counts(std::string_view side, std::span<const image::Port> ports,
              std::span<const std::string> fields) {
    if (ports.empty()) return;
    text_ += fmt::format(
        "/* How many numbers each {} has; the last dim of its type is contiguous. */\n", side);
    for (size_t i = 0; i < ports.size(); ++i)
      text_ += fmt::format("#define {}_{}_{} {}\n", upper_, upper_case(side), upper_case(fields[i]),
                           c_count(ports[i].type));
    text_ += "\n";
  }

  void functions() {
    text_ += fmt::format(
        "/* {1}_OK if this processor can run the model, else {1}_UNSUPPORTED. */\n"
        "int {0}_supported(void);\n\n"
        "/* What a run needs beside inputs, outputs and weights; 0 if it is not supported. */\n"
        "size_t {0}_workspace_bytes(void);\n\n"
        "/* Computes the outputs, on the calling thread. The workspace has {0}_workspace_bytes(),\n"
        " * aligned to 64, and any content; NULL: the run allocates it, and frees it. Any number "
        "of\n"
        " * threads may run the model at once, each with a workspace of its own. Outputs overlap\n"
        " * nothing{2}. */\n"
        "int {0}_run(const {0}_inputs* inputs, const {0}_outputs* outputs, void* workspace);\n",
        library_.name, upper_, donations());
  }
  std::string donations() const {
    std::string text;
    for (const auto& [input, output] : library_.donations)
      text += fmt::format("; {} may be all of the memory of {}, which then is lost",
                          outputs_[output], inputs_[input]);
    return text;
  }

  const LibraryInterface& library_;
  const std::string upper_;
  const std::vector<std::string> inputs_;
  const std::vector<std::string> outputs_;
  std::string text_;
};

}  // namespace

std::vector<std::string> c_fields(std::span<const image::Port> ports) {
  CNames names;
  std::vector<std::string> fields;
  for (const image::Port& port : ports) fields.push_back(names.add(port.name));
  return fields;
}

std::string library_header(const LibraryInterface& library) { return Header(library).write(); }

}  // namespace hone
