#pragma once

#include <string>
#include <vector>

#include "io/onnx/proto.h"

// What IR versions after the schema library's wrote into fields that it does not know.

namespace hone::onnx_io {

// Functions of one name are told apart by it; usually "".
std::string overload_of(const onnx::NodeProto& node);
std::string overload_of(const onnx::FunctionProto& function);

// Attributes that a call may leave out, with what they are then.
Result<std::vector<onnx::AttributeProto>> default_attributes(const onnx::FunctionProto& function);

}  // namespace hone::onnx_io
