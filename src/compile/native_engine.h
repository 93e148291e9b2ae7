#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/rng.h"
#include "compile/compilation.h"
#include "ir/reference/evaluate_model.h"

namespace hone {

// Tells whether a run makes an input of the next one that is longer, as a decoder does with its
// cache: an output is an input but for one open size, which is a sum of that and another.
bool grows(const Graph& graph);

// Runs the graphs of models as native code, compiled when they are first met.
//
// A graph with open sizes is first compiled for the sizes at hand, which gives the best code. When
// it comes back with others it is compiled once more with its sizes left open, and that code serves
// all sizes from then on. One that grows is sure to come back with others, and so are those beside
// it in a loop: they are compiled once, with open sizes. A graph that cannot be compiled so is
// compiled for each size. One whose plan says the hash of the graph as it is, sizes open, is
// compiled under it for all sizes at once.
//
// Code is kept, as far as there is room: the least recently used goes first.
class NativeEngine : public GraphEngine {
 public:
  struct Room {
    size_t graphs = 128;       // that are open
    size_t executables = 256;  // for sizes
  };

  explicit NativeEngine(Target target, CompileOptions options = {})
      : NativeEngine(std::move(target), std::move(options), Room()) {}
  NativeEngine(Target target, CompileOptions options, Room room);

  // The plan of this graph, which lives as long as it is run; that of the options is for all
  // others.
  void set_plan(const Graph* graph, PlacedPlan plan) { plans_[graph] = std::move(plan); }
  // The model whose graphs will be run: in its loops some may have other sizes in each iteration.
  void look_for_loops(const Model& model);
  Result<std::vector<Tensor>> run(const GraphRef& graph, std::span<const Tensor> inputs) override;
  // The executable that run() uses for inputs of these types; made, if it is not there. Several
  // threads may run it while others ask for more.
  Result<std::shared_ptr<const Executable>> executable(const GraphRef& graph,
                                                       std::span<const Tensor> inputs);
  // From then on, what is made is kept with what it was made from, for profiles().
  void keep_code() { keeps_code_ = true; }
  // Gives up the memory of all that was made, but keeps what it was made from: keep_code() came
  // before. Then loads it once more, at other places (runtime/load_elsewhere.h).
  void unload();
  Status load_elsewhere(Rng& rng);
  // From then on, runs are timed command by command.
  void start_profile() { is_profiled_ = true; }
  // The same; runs add to the trace, too, which outlives them. A program is an executable.
  void start_trace(RunTrace& trace) {
    is_profiled_ = true;
    trace_ = &trace;
  }
  // The time of runs of a graph for inputs of some sizes.
  struct GraphProfile {
    std::string name;
    Bindings sizes;  // of the graph's symbols
    int64_t runs = 0;
    Profile times;
    std::shared_ptr<Compilation> code;  // for these sizes, or for all
    uint32_t program = 0;               // in the trace
  };
  // The profiles of all graphs that were run since, as long as their executables are kept.
  std::vector<GraphProfile> profiles() const;
  // How often code was made so far.
  int64_t compiled() const { return compiled_; }
  size_t executables() const { return sized_.size(); }  // that are kept

 private:
  struct Sized {
    GraphRef graph;
    std::vector<Type> types;  // of the inputs
    Bindings sizes = {};
    std::shared_ptr<const Executable> executable = nullptr;
    std::shared_ptr<Compilation> code = nullptr;  // if it is kept
    int64_t profiled_runs = 0;
    Profile profile = {};
    uint32_t program = 0;  // the number of its making
  };
  struct Open {
    GraphRef graph;
    std::shared_ptr<Compilation> compilation;  // null: met once; or only sizes make it compilable
    bool is_refused = false;
  };

  // At the front of the list.
  Result<Sized*> find(const GraphRef& graph, std::span<const Tensor> inputs);
  Result<Sized> make(const GraphRef& graph, std::vector<Type> types);
  CompileOptions options_of(const Graph* graph) const;
  // The code for all sizes; null if there is none.
  Result<std::shared_ptr<Compilation>> open_code(const GraphRef& graph);

  const Target target_;
  CompileOptions options_;
  const Room room_;
  std::map<const Graph*, PlacedPlan> plans_;
  std::set<const Graph*> in_growing_loops_;
  std::list<Sized> sized_;
  std::list<Open> open_;
  int64_t compiled_ = 0;
  bool keeps_code_ = false;
  bool is_profiled_ = false;
  RunTrace* trace_ = nullptr;
  uint32_t programs_ = 0;  // executables made so far
};

}  // namespace hone
