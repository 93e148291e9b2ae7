#pragma once

#include <string>
#include <vector>

// The coverage of other languages for people, from the tables of the front ends.

namespace hone::cli {

// A row per op: "Softmax", "1, 11, 13".
struct OnnxRow {
  std::string name;  // of other domains than the default one: "com.microsoft.Gelu"
  std::string versions;
};
std::vector<OnnxRow> onnx_rows();

std::string onnx_markdown();  // docs/onnx-ops.md
std::string hlo_markdown();   // docs/hlo-ops.md

}  // namespace hone::cli
