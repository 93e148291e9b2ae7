#include <cstdint>
#include <string_view>

#include "program/tiles/interpret.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

bool is_small(const hone::TileProgram& program) {
  double elements = 0;
  for (const hone::TileBuffer& buffer : program.buffers) {
    if (!buffer.type.is_static()) return false;
    elements += static_cast<double>(buffer.type.static_elements());
  }
  return elements < 1 << 12;
}

}  // namespace

// Parsing never crashes; what verifies prints as a text that means the same, and touches nothing
// outside of its buffers, whatever it computes.
HONE_FUZZ(tiles) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hone::Result<hone::TileProgram> program = hone::parse_tiles(text);
  if (!program.ok() || !hone::verify(*program).ok()) return;
  const std::string printed = hone::print(*program);
  hone::Result<hone::TileProgram> again = hone::parse_tiles(printed);
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::verify(*again).ok(), "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);

  if (!is_small(*program)) return;
  std::vector<hone::Tensor> inputs;
  for (const hone::TileBuffer& buffer : program->buffers)
    if (buffer.role == hone::BufferRole::input) inputs.push_back(hone::Tensor::zeros(buffer.type));
  (void)hone::interpret(*program, inputs, {.max_statements = 10'000});
}

}  // namespace hone::HONE_FILE
