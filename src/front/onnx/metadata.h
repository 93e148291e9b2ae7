#pragma once

#include <vector>

#include "front/onnx/proto.h"
#include "ir/model.h"

// The metadata of a file for facts that ONNX cannot say: the bounds of symbols and which
// inputs are given up for results.
//
//   hone.symbols    "N 1 64 1; T 8 512 8": name, least, most, what it is a multiple of
//   hone.donations  "0 1; 2 3": input, output

namespace hone::onnx_io {

struct Metadata {
  std::vector<Symbol> symbols;
  std::vector<Donation> donations;
};

// Throws Failure where the file's lists are malformed. Other keys are none of hone's.
Metadata read_metadata(const onnx::ModelProto& proto);
void write_metadata(const Model& model, onnx::ModelProto& proto);

// Throws Failure if a donation does not fit. A model of several graphs donates nothing.
void apply_donations(Model& model, const std::vector<Donation>& donations);

}  // namespace hone::onnx_io
