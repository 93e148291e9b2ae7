#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compile/native_code.h"
#include "compile/segment_tree.h"
#include "ir/model.h"
#include "runtime/runnable.h"
#include "runtime/segment_run.h"

namespace hone {

// A model as native code, which is made when its graphs are first run. Segments run by the
// runtime's interpreter. Bodies of deferred segments are kept by the types of their inputs: at most
// kMaxKept, the least recently used ones go first.
class NativeModel final : public Runnable {
 public:
  static constexpr size_t kMaxKept = 128;

  // The plans are those of graphs_of(model), null where a graph has none; empty: all have that of
  // the options. Options and plans may point to things, which outlive the model.
  static Result<std::shared_ptr<NativeModel>> make(Model model, Target target,
                                                   CompileOptions options = {},
                                                   std::span<const PlacedPlan* const> plans = {});

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return code_->threads(); }
  const Executable* single() const override { return nullptr; }  // it is made by the first run
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

  // A model of several graphs has no quick start: nobody knows how often each of them runs.
  NativeCode& code() const { return *code_; }
  // The source of the code that has these times, as long as it is kept.
  std::optional<NativeCode::Made> made(const UnitTimes& times) const;

 private:
  // The segments of the model or of a body.
  struct Part {
    SegmentUnits segments;
    uint32_t first = 0;  // the number of its first unit among those of all parts
  };
  // The body of a deferred segment for inputs of these types.
  struct Kept {
    std::shared_ptr<const SegmentSource> source;
    std::vector<std::string> inputs;
    std::vector<std::string> results;
    std::vector<Type> types;
    std::shared_ptr<const Part> body;
  };

  NativeModel(Model model, Target target, CompileOptions options);
  std::shared_ptr<const Part> part(SegmentUnits segments) const;
  Result<std::shared_ptr<const Part>> body_of(const DeferredSegment& segment,
                                              std::vector<Type> types) const;
  RunUnit runs(const Part& part, const RunOptions& options, std::vector<UnitTimes>* times) const;
  const GraphRef* graph_of(uint32_t unit) const;

  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  const std::unique_ptr<NativeCode> code_;
  bool is_single_ = false;  // it is one graph

  mutable std::mutex mutex_;  // guards what follows
  mutable uint32_t units_ = 0;
  mutable std::list<Kept> kept_;

  const std::shared_ptr<const Part> all_;  // the segments of the model
};

}  // namespace hone
