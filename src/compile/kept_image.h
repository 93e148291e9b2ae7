#pragma once

#include <optional>
#include <string>

#include "cache/compile_cache.h"
#include "plan/plan.h"
#include "runtime/image.h"

namespace hone {

// The image of a graph under a complete plan, kept in the cache: whoever finds it lowers nothing
// and makes no code. Constants of the graph are not kept, also where a layout of the plan packs
// them. The entry names each by the hash of its content, so its size does not grow with weights,
// which are mapped from their file anyway. Other constants, such as transformed ones, are kept with
// it, up to 64 MiB.
class KeptImage {
 public:
  // The graph, the plan and the cache outlive it.
  KeptImage(const Graph& graph, const Plan& plan, const Target& target, bool flushes_denormals,
            CompileCache& cache);

  // An entry that does not fit counts as absent.
  std::optional<Image> find() const;
  // If the cache or the format does not take it, it is made again.
  void put(const Image& image) const;
  const std::string& key() const { return key_; }  // in the cache

 private:
  const Graph& graph_;
  const Plan& plan_;
  CompileCache& cache_;
  std::string key_;
};

}  // namespace hone
