#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/model.h"
#include "tensor/tensor.h"

// The data of conformance cases: which files there are, and what they say.

namespace hone {

struct CaseFiles {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> inputs;  // by number, without gaps
  std::vector<std::filesystem::path> outputs;
  // From names.json; empty: the files are in the order of the model.
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
};

// True if the folder holds a case; cheap.
bool is_conformance_case(const std::filesystem::path& folder);
// At least one.
Result<std::vector<CaseFiles>> data_sets_of(const std::filesystem::path& folder);

struct ExpectedOutput {
  size_t index;  // of the model's outputs
  Tensor tensor;
};
struct CaseData {
  std::vector<Tensor> inputs;  // of the model, in its order
  std::vector<ExpectedOutput> outputs;
};
Result<CaseData> read_data_set(const CaseFiles& set, const Model& model);

// numpy has no bf16 and no f8, so data of these types are often written as the integers of their
// bits. Such a tensor as the type that is wanted; others as they are.
Tensor with_lacking_type(const Tensor& tensor, DType wanted);

}  // namespace hone
