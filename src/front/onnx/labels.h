#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hone {

// The meaning of the numbers of an ONNX file's inputs and outputs. hone has no tensors of strings:
// the elements of one are i64, the places of its strings in a table, which is one for the whole
// file. docs/onnx.md says what is in it.
struct OnnxLabels {
  // The labels of the columns of probabilities; of maps (ZipMap) these are the keys.
  struct Columns {
    std::vector<std::string> names;
    bool are_numbers = false;
    bool operator==(const Columns&) const = default;
  };

  std::vector<std::string> strings;                     // the table
  std::set<std::string, std::less<>> values;            // inputs and outputs that hold places in it
  std::map<std::string, Columns, std::less<>> columns;  // by output
};

}  // namespace hone
