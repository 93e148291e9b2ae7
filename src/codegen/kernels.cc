#include "codegen/kernels.h"

#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

namespace hone {

namespace {

constexpr std::string_view kSymbol = "kernel";

// Counts those that the cache has.
Result<std::string> object_of(const program::Kernel& kernel, const std::string& key,
                              const Target& target, const KernelOptions& options,
                              std::atomic<size_t>& found) {
  CompileCache* const cache = options.cache;
  if (cache != nullptr) {
    if (std::optional<std::string> known = cache->find(key)) {
      ++found;
      return *std::move(known);
    }
  }
  std::string object =
      HONE_TRY(compile_tiles(kernel.tiles, target, kSymbol, CodeForm::object, options.effort));
  // A cache that cannot be written to costs time, nothing else.
  if (cache != nullptr && options.effort == CodeEffort::full) (void)cache->put(key, object).ok();
  return object;
}

// The longest text first, whose compilation takes the longest: nobody waits for it alone at the
// end.
std::vector<size_t> longest_first(std::span<const std::string> texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::pair(texts[b].size(), a) < std::pair(texts[a].size(), b);
  });
  return order;
}

std::string from_cache(size_t found, size_t kernels) {
  if (found == 0) return "";
  return found == kernels ? "all from the cache" : fmt::format("{} from the cache", found);
}

}  // namespace

std::string code_version() {
  return fmt::format("compiler {} llvm {}", HONE_CODEGEN_VERSION, LLVM_VERSION_STRING);
}

std::string kernel_key(const program::Kernel& kernel, const Target& target) {
  TileProgram nameless = kernel.tiles;
  nameless.name = kSymbol;
  std::string key = fmt::format("kernel {:016x} {}", kernel.hash, name(target.isa));
  for (Extension extension : kExtensions)
    if (target.extensions.contains(extension)) key += fmt::format(" {}", name(extension));
  return key + "\n" + code_version() + "\n" + print(nameless);
}

Result<std::vector<KernelCode>> compile_kernels(std::span<const program::Kernel> kernels,
                                                const Target& target, ThreadPool& pool,
                                                const KernelOptions& options) {
  Progress& progress = options.progress != nullptr ? *options.progress : no_progress();
  progress.start(static_cast<int64_t>(kernels.size()), "kernels");
  std::vector<KernelCode> objects(kernels.size());
  std::vector<Status> states(kernels.size());
  std::atomic<size_t> found = 0;
  const auto count = static_cast<int64_t>(kernels.size());
  std::vector<std::string> keys(kernels.size());
  pool.parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(to); ++i)
      keys[i] = kernel_key(kernels[i], target);
  });
  const std::vector<size_t> order = longest_first(keys);
  auto compile = [&](size_t i) -> Status {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    const SpanClock clock;
    std::string object = HONE_TRY(object_of(kernels[i], keys[i], target, options, found));
    if (options.observer) options.observer(kernels[i].tiles.name, clock.span());
    objects[i] = {std::make_shared<const std::string>(std::move(object)),
                  phase_symbols(kernels[i].tiles, kSymbol), target.instructions()};
    progress.advance();
    return {};
  };
  pool.parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
    for (int64_t at = from; at < to; ++at) {
      const size_t i = order[static_cast<size_t>(at)];
      states[i] = compile(i);
    }
  });
  progress.finish(from_cache(found, kernels.size()));
  for (Status& state : states) HONE_TRY(std::move(state));
  return objects;
}

}  // namespace hone
