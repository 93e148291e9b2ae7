#pragma once

#include "base/error.h"
#include "front/onnx/labels.h"
#include "oracle/compare.h"
#include "tensor/tensor.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Writes, prints and compares the outputs of a run. `names`: of all of them, in order.

namespace hone::cli {

class Arguments;
class Console;

// A row per output: type, least, mean and greatest element, the first elements, or the strings that
// they stand for. Then a line for each output whose columns have labels.
std::string outputs_table(std::span<const std::string> names, std::span<const Tensor> outputs,
                          const OnnxLabels& labels = {});

// The labels of inputs and outputs, a line for each; "" if there are none.
std::string labels_text(const OnnxLabels& labels);

// A table whose lines with the word WRONG stand out, if the terminal shows colours.
std::string marked(const std::string& table, const Console& console);

// -o: a .npz, a .npy for a single output, otherwise a folder with a .npy for each.
Status check_output_path(size_t outputs, const std::string& path);
Status write_outputs(std::span<const std::string> names, std::span<const Tensor> outputs,
                     const std::string& path, Console& console);

// --expect: the tensor that output `index` should equal.
struct Expected {
  size_t index;
  Tensor tensor;
  std::string from;
};
Result<std::vector<Expected>> read_expected(std::span<const std::string> names,
                                            std::string_view files);

// --rtol and --atol.
GivenTolerance tolerance_of(const Arguments& arguments);
// Both only with --expect.
Status check_tolerance_options(const Arguments& arguments);
// The meaning of outputs that are not as expected: a failure, or something to know.
enum class Differing : uint8_t { fails, is_told };
// Reports each comparison; an error of code `mismatch` if one failed.
Status compare_outputs(std::span<const std::string> names, std::span<const Tensor> outputs,
                       std::span<const Expected> expected, const GivenTolerance& given,
                       Differing differing, Console& console);

}  // namespace hone::cli
