#include "compile/cached_executable.h"

#include "codegen/kernels.h"
#include "compile/cached_plan.h"
#include "compile/honec.h"
#include "ir/op_facts.h"
#include "runtime/honec.h"

namespace hone {
namespace {

constexpr int64_t kMostConstants = int64_t{1} << 20;  // bytes: more are not worth a copy on disk

int64_t constant_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes()) {
    if (is_constant(graph.opcode(n))) bytes += graph.constant(n).type().static_bytes();
    for (const GraphRef& region : graph.regions(n)) bytes += constant_bytes(*region);
  }
  return bytes;
}

bool is_kept(const Graph& graph, const Cost& cost, const CompileOptions& options) {
  return options.cache != nullptr && !cost.version().empty() && !options.plan_seed &&
         !options.best_plan && !options.find_rewrites && !options.drops_unfit &&
         graph.is_static() && constant_bytes(graph) <= kMostConstants;
}

// All that the image depends on.
std::string image_key(const Graph& graph, const Target& target, const Cost& cost,
                      const CompileOptions& options) {
  std::string key = plan_key(graph, options.plan, target, cost, options.heuristics, "image");
  key += fmt::format("image {} {}\n", HONE_IMAGE_VERSION, code_version());
  for (const std::string& pass : options.prepare.without) key += fmt::format("without {}\n", pass);
  if (options.prepare.flushes_denormals) key += "flush\n";
  return key;
}

Result<Image> image_of(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const HonecFile file = HONE_TRY(HonecFile::parse(owner, std::as_bytes(std::span(*owner))));
  return file.image(0);
}

}  // namespace

Result<std::shared_ptr<const Executable>> cached_executable(const Graph& graph,
                                                            const Target& target,
                                                            const CompileOptions& options) {
  Compilation compilation(graph, target, options);
  if (!is_kept(graph, compilation.cost(), options)) return compilation.executable();
  const std::string key = image_key(graph, target, compilation.cost(), options);
  if (std::optional<std::string> bytes = options.cache->find(key))
    if (const Result<Image> image = image_of(*std::move(bytes)); image.ok()) {
      auto loaded =
          Executable::load(*image, {.team = options.team, .memory_limit = options.memory_limit});
      if (loaded.ok()) return loaded;
    }
  const HonecProgram program = {HONE_TRY(compilation.image())};
  // If the format or the cache does not take it, it is made again.
  if (const Result<HonecBytes> bytes = honec_bytes({&program, 1}, "cache"); bytes.ok())
    (void)options.cache->put(key, bytes->joined()).ok();
  return compilation.executable();
}

}  // namespace hone
