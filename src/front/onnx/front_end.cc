#include <algorithm>

#include "front/onnx/onnx.h"

namespace hone {
namespace {

// A ModelProto: its first field is one of those that it has, and the bytes are no text. Nearly all
// writers begin with the IR version, field 1.
bool begins_like_onnx(std::string_view beginning) {
  constexpr std::string_view kTags("\x08\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca", 11);
  if (beginning.empty() || kTags.find(beginning[0]) == kTags.npos) return false;
  return std::ranges::any_of(beginning, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

Result<Model> parse_bytes(std::string_view bytes, std::string_view where,
                          const ImportOptions& options) {
  return parse_onnx(std::as_bytes(std::span(bytes)), where, ".", options);
}

}  // namespace

FrontEnd onnx_front_end() {
  return {.name = "an ONNX file",
          .extension = ".onnx",
          .heeds_options = true,
          .recognizes = begins_like_onnx,
          .load = load_onnx,
          .parse = parse_bytes,
          .save = save_onnx};
}

}  // namespace hone
