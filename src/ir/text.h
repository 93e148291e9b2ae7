#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

// Graphs as text; docs/formats/graph-text.md describes the language. Printing and parsing are exact
// inverses: parse_graph(print(g)) has the same values in the same order with the same names.

namespace hone {

// Constants that are too large for the text, by name.
class WeightTable {
 public:
  struct Entry {
    std::string name;
    Tensor tensor;
  };

  WeightTable() = default;
  WeightTable(WeightTable&&) = default;
  WeightTable& operator=(WeightTable&&) = default;

  // Adds under the wanted name, or under one made from it if it is taken; returns the name, which
  // is valid as long as the table lives.
  std::string_view add(std::string_view wanted, Tensor tensor);
  const Tensor* find(std::string_view name) const;  // null if there is none
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;  // a deque, so that names stay where they are
  std::unordered_map<std::string_view, size_t> by_name_;
  std::unordered_map<std::string, int64_t> suffixes_;
};

struct PrintOptions {
  int64_t inline_elements = 16;    // constants up to this size are written as numbers
  WeightTable* weights = nullptr;  // takes larger ones; null: they are written as hex digits
  bool elide = false;              // larger ones become "...": for people, not for parsing
};

std::string print(const Graph& graph, const PrintOptions& options = {});

struct ParseOptions {
  std::string_view file = "<text>";      // for the places in errors
  const WeightTable* weights = nullptr;  // what @names of constants refer to
};

// Errors have their place as "file:line:column". Types are checked as the graph is built; what
// remains to be checked is left to verify().
Result<Graph> parse_graph(std::string_view text, const ParseOptions& options = {});
// A text of any number of graphs.
Result<std::vector<Graph>> parse_graphs(std::string_view text, const ParseOptions& options = {});

// The name in the line `weights "NAME"` at the start of a text; "" without one.
Result<std::string> weights_file_of(std::string_view text, const ParseOptions& options = {});

}  // namespace hone
