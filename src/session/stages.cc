#include "session/stages.h"

#include "base/text.h"
#include "cost/program_price.h"
#include "planner/memory.h"

#include <algorithm>

namespace hone {

std::function<void(CompileStage, double)> noting(std::vector<StageTime>& times,
                                                 std::function<void(CompileStage, double)> other) {
  return [&times, other = std::move(other)](CompileStage stage, double seconds) {
    times.push_back({stage, seconds});
    if (other) other(stage, seconds);
  };
}

namespace {

std::string memory_text(const std::optional<MemoryBounds>& memory) {
  if (!memory || memory->height == 0) return "";
  const int64_t gap = memory->height - memory->bound;
  return fmt::format(
      "; values take {}, {}", format_bytes(memory->height),
      gap == 0
          ? "the least that is possible"
          : fmt::format("{} ({:.1f} %) more than their bound", format_bytes(gap),
                        100.0 * static_cast<double>(gap) / static_cast<double>(memory->bound)));
}

}  // namespace

Result<std::string> made_by(CompileStage stage, Compilation& compilation) {
  switch (stage) {
    case CompileStage::graph: {
      const Graph& graph = *HONE_TRY(compilation.graph());
      return fmt::format("{} nodes of primitive ops", graph.node_count());
    }
    case CompileStage::plan: {
      const Plan& plan = *HONE_TRY(compilation.plan());
      return fmt::format("{} kernels to run on {} threads{}", plan.fuse.size(),
                         plan.threads.value_or(1),
                         memory_text(HONE_TRY(memory_of(*HONE_TRY(compilation.graph()), plan))));
    }
    case CompileStage::program: {
      const Program& program = *HONE_TRY(compilation.program());
      const ProgramPrice price = HONE_TRY(hone::price(program, compilation.cost()));
      return fmt::format("{} different kernels, {} commands, priced at {}", program.kernels.size(),
                         program.main->commands.size(), format_seconds(price.total()));
    }
    case CompileStage::kernels: {
      int64_t bytes = 0, on_gpu = 0;
      for (const KernelCode& kernel : HONE_TRY(compilation.kernels()))
        if (kernel.object)
          bytes += static_cast<int64_t>(kernel.object->size());
        else
          ++on_gpu;
      if (compilation.target().gpu)
        return fmt::format("{} for the GPU, {} of code for the CPU beside it", on_gpu,
                           format_bytes(bytes));
      return fmt::format("{} of code", format_bytes(bytes));
    }
    case CompileStage::image: {
      const Image& image = *HONE_TRY(compilation.image());
      return fmt::format("an arena of {}", format_bytes(image.arena_bytes));
    }
    case CompileStage::executable: {
      HONE_TRY(compilation.executable());
      return std::string("in memory");
    }
  }
  HONE_CHECK(false, "a stage {}", static_cast<int>(stage));
}

CompileStage stage_from_name(std::string_view text) {
  const auto* const found =
      std::ranges::find_if(kStages, [&](CompileStage stage) { return name(stage) == text; });
  HONE_CHECK(found != std::end(kStages), "no stage is called '{}'", text);
  return *found;
}

}  // namespace hone
