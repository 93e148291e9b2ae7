#include <cstdint>
#include <map>
#include <string_view>

#include "program/frame.h"
#include "program/instantiate.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The size of the program written out.
double commands(const hone::Program& program) {
  std::map<const hone::program::Frame*, double> counts;
  for (const hone::program::FrameRef& frame : hone::program::all_frames(program.main)) {
    double count = 1;
    for (const hone::program::Command& command : frame->commands) {
      ++count;
      for (const hone::program::FrameRef& inner : frames_of(command)) count += counts[inner.get()];
    }
    counts[frame.get()] = count;
  }
  return counts[program.main.get()];
}

}  // namespace

// Parsing never crashes; what verifies prints as a text that means the same, and can be written out
// or is too large.
HONE_FUZZ(program) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  hone::Result<hone::Program> program = hone::parse_program(text);
  if (!program.ok() || !hone::verify(*program).ok()) return;
  const std::string printed = hone::print(*program);
  hone::Result<hone::Program> again = hone::parse_program(printed);
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::verify(*again).ok(), "{}", printed);
  HONE_CHECK(hone::print(*again) == printed, "{}", printed);

  if (commands(*program) > 10'000) return;
  std::vector<hone::KernelCode> code;
  for (const hone::program::Kernel& kernel : program->kernels)
    code.push_back({nullptr, std::vector<std::string>(kernel.tiles.phases.size())});
  (void)hone::instantiate(*program, {}, code);
}

}  // namespace hone::HONE_FILE
