#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compile/compilation.h"
#include "ir/model.h"

namespace hone {

// Tells whether an output can be a longer input of the next run, like the cache of a decoder. Its
// type is that of an input but for one open size, which is the input's plus another.
bool grows(const Graph& graph);

// The code of a model's graphs, made when they are first met. Any number of threads may ask for it;
// one of them makes code at a time.
//
// A graph with open sizes is first compiled for the sizes at hand, which gives the best code. When
// it comes back with others it is compiled once more with its sizes left open, and that code serves
// all sizes from then on. One that grows is sure to come back with others, and so are those beside
// it in a loop: they are compiled once, with open sizes. A graph that cannot be compiled so is
// compiled for each size. One whose plan says the hash of the graph as it is, sizes open, is
// compiled under it for all sizes at once.
//
// Code is kept, as far as there is room: the least recently used goes first.
class NativeCode {
 public:
  struct Room {
    size_t graphs = 128;       // that are open
    size_t executables = 256;  // for sizes
  };

  explicit NativeCode(Target target, CompileOptions options = {})
      : NativeCode(std::move(target), std::move(options), Room()) {}
  NativeCode(Target target, CompileOptions options, Room room);

  // The plan of this graph, which lives as long as it is run; that of the options is for all
  // others. Before the first code is asked for.
  void set_plan(const Graph* graph, PlacedPlan plan) { plans_[graph] = std::move(plan); }
  // The model whose graphs will be run: in its loops some may have other sizes in each iteration.
  void look_for_loops(const Model& model);
  // The code of the graph for inputs of these types; made, if it is not there.
  Result<std::shared_ptr<const Runnable>> executable(const GraphRef& graph,
                                                     std::span<const Tensor> inputs);
  int64_t threads() const;  // that work on a kernel
  int64_t memory_limit() const { return options_.memory_limit; }

  // From then on, what is made is kept with what it was made from, for made().
  void keep_sources() { keeps_sources_ = true; }
  // Gives up the memory of all that was made, but keeps what it was made from: keep_sources() came
  // before. Then loads it once more, at other places (runtime/load_elsewhere.h).
  void unload();
  Status load_elsewhere(Rng& rng);
  struct Made {
    std::string name;                   // of the graph
    Bindings sizes;                     // of its symbols
    std::shared_ptr<Compilation> from;  // for these sizes, or for all
  };
  // The source of the code of a graph for inputs of these types, as long as it is kept.
  std::optional<Made> made(const GraphRef& graph, std::span<const Type> types) const;

  // Makes the real code of what runs on quick code, or waits for it.
  Status finish(Progress* progress = nullptr, const CancelToken* cancel = nullptr) const;
  size_t early_kernels() const;  // those that had quick code at first

  int64_t compiled() const;    // how often code was made so far
  size_t executables() const;  // that are kept

 private:
  struct Sized {
    GraphRef graph;
    std::vector<Type> types;  // of the inputs
    Bindings sizes = {};
    std::shared_ptr<const Runnable> executable = nullptr;
    std::shared_ptr<Compilation> from = nullptr;  // if it is kept
  };
  struct Open {
    GraphRef graph;
    std::shared_ptr<Compilation> compilation;  // null: met once; or only sizes make it compilable
    bool is_refused = false;
  };

  // These are called with the lock.
  Result<Sized> make(const GraphRef& graph, std::vector<Type> types);
  CompileOptions options_of(const Graph* graph) const;
  // The code for all sizes; null if there is none.
  Result<std::shared_ptr<Compilation>> open_code(const GraphRef& graph);

  const Target target_;
  CompileOptions options_;
  const Room room_;
  std::map<const Graph*, PlacedPlan> plans_;
  std::set<const Graph*> in_growing_loops_;
  bool keeps_sources_ = false;

  mutable std::mutex mutex_;  // guards what follows, and the team of the options
  std::list<Sized> sized_;
  std::list<Open> open_;
  int64_t compiled_ = 0;
};

}  // namespace hone
