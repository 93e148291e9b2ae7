#include "front/front_end.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/text.h"
#include "front/gguf/gguf_model.h"
#include "front/hlo/hlo.h"
#include "front/hlo/write/write.h"
#include "front/hone/graph_file.h"
#include "front/onnx/onnx.h"

namespace hone {

std::span<const FrontEnd> front_ends() {
  static const std::array kFrontEnds = {gguf_front_end(), onnx_front_end(), stablehlo_front_end(),
                                        hlo_front_end(), text_front_end()};
  return kFrontEnds;
}

std::string file_beginning(const std::filesystem::path& path) {
  constexpr std::streamsize kMostBytes = 4096;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  std::string bytes(kMostBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), kMostBytes);
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

const FrontEnd* recognized_front_end(std::string_view beginning) {
  for (const FrontEnd& each : front_ends())
    if (each.recognizes(beginning)) return &each;
  return nullptr;
}

const FrontEnd* front_end_named(const std::filesystem::path& path) {
  for (const FrontEnd& each : front_ends())
    if (path.extension() == each.extension) return &each;
  return nullptr;
}

std::string front_end_list() {
  std::vector<std::string> names;
  for (const FrontEnd& each : front_ends())
    names.push_back(fmt::format("{} ({})", each.name, each.extension));
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} or {}", join(names, ", "), last);
}

}  // namespace hone
