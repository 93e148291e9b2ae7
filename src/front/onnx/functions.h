#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "front/onnx/frame.h"

// Local functions: calls are inlined.

namespace hone::onnx_io {

// "ai.onnx" is the default domain, "".
std::string canonical_domain(std::string_view domain);

// The imported versions by domain; throws Failure for unknown ones.
Frame::Opsets opsets_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                        int64_t ir_version);

// Collects the functions and checks that none calls itself, and that every op of the file is known.
std::shared_ptr<const Source> make_source(std::shared_ptr<const ModelFile> file,
                                          const ImportOptions& options);

// The function that the node calls; null if it is an op.
const onnx::FunctionProto* find_function(const Source& source, const onnx::NodeProto& node);

void import_call(Frame& frame, Flow& flow, const onnx::NodeProto& node,
                 const onnx::FunctionProto& function);

}  // namespace hone::onnx_io
