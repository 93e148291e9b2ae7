#pragma once

#include <list>
#include <memory>
#include <vector>

#include "compile/compilation.h"
#include "ir/reference/evaluate_model.h"

namespace hone {

// Runs the graphs of models as native code, each compiled when it is first met with inputs of its
// types: at most kMaxKept at a time, the least recently used ones go first.
class NativeEngine : public GraphEngine {
 public:
  static constexpr size_t kMaxKept = 128;

  explicit NativeEngine(Target target, CompileOptions options = {});

  Result<std::vector<Tensor>> run(const GraphRef& graph, std::span<const Tensor> inputs) override;
  // Graphs that were compiled so far.
  int64_t compiled() const { return compiled_; }

 private:
  struct Kept {
    GraphRef graph;
    std::vector<Type> types;
    std::shared_ptr<const Executable> executable;
  };
  Result<std::shared_ptr<const Executable>> executable_of(const GraphRef& graph,
                                                          std::span<const Tensor> inputs);

  const Target target_;
  CompileOptions options_;
  std::list<Kept> kept_;
  int64_t compiled_ = 0;
};

}  // namespace hone
