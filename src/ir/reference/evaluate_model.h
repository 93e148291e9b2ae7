#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/model.h"
#include "ir/reference/evaluate.h"

namespace hone {

class DeferredBodies;  // evaluate_model.cc

// Sees each graph before it is evaluated. An error ends the run.
using GraphWatch = std::function<Status(const GraphRef& graph, std::span<const Tensor> inputs)>;

// The reference for models: runs one any number of times. It keeps the bodies of deferred segments
// by their input types: at most 128, the least recently used ones go first.
//
// Segments run one after the other, each graph by evaluate(), whose symbols follow from the inputs.
// A value between segments has its declared element type in every mode; `wide` keeps more only
// within a graph.
class ModelRunner {
 public:
  static constexpr size_t kMaxKept = 128;

  explicit ModelRunner(Model model, GraphWatch watch = {});
  ~ModelRunner();

  // The model is verified in the first run.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const EvalOptions& options = {});
  // How often the body of a deferred segment had to be made.
  int64_t specialized() const;

 private:
  Model model_;
  GraphWatch watch_;
  bool is_verified_ = false;
  std::unique_ptr<DeferredBodies> bodies_;
};

// One run.
Result<std::vector<Tensor>> evaluate_model(const Model& model, std::span<const Tensor> inputs,
                                           const EvalOptions& options = {});

}  // namespace hone
