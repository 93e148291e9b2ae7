#pragma once

#include <string>
#include <vector>

// The coverage of ONNX for people, from the table of the front end.

namespace hone::cli {

// A row per op: "Softmax", "1, 11, 13".
struct OnnxRow {
  std::string name;  // of other domains than the default one: "com.microsoft.Gelu"
  std::string versions;
};
std::vector<OnnxRow> onnx_rows();

std::string onnx_markdown();  // docs/onnx-ops.md

}  // namespace hone::cli
