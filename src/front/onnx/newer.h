#pragma once

#include <string>
#include <vector>

#include "front/onnx/proto.h"

// The additions of IR versions after 8. The schema library knows 8 and keeps newer fields as
// unknown ones; those that change what a model computes are read here.

namespace hone::onnx_io {

inline constexpr int64_t kOldestIrVersion = 3;  // the first with operator sets
inline constexpr int64_t kNewestIrVersion = 14;

// Tells functions of one domain and name apart; empty if there is none.
std::string overload_of(const onnx::NodeProto& node);
std::string overload_of(const onnx::FunctionProto& function);
// FunctionProto.attribute_proto: attributes that a call may leave out, with their values.
Result<std::vector<onnx::AttributeProto>> default_attributes(const onnx::FunctionProto& function);

// Checks this message alone, not those within: an error for a field or an enum value that is not
// known even here. Fields that cannot change a value pass.
Status check_unknown_fields(const google::protobuf::Message& message);

// "node 'h'": what errors call the message in a field of another one. `index` tells repeated ones
// without a name apart.
std::string message_label(const google::protobuf::Message& message, std::string_view field,
                          int index);

// Calls `check` with the message and with all messages within; stops at the first error and says
// where it was.
template <class Check>
Status for_each_message(const google::protobuf::Message& message, Check&& check) {
  HONE_TRY(check(message));
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const google::protobuf::Message& child =
          field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                               : reflection.GetMessage(message, field);
      Status status = for_each_message(child, check);
      if (!status.ok()) {
        return std::move(status).error().within(message_label(child, field->name(), i));
      }
    }
  }
  return {};
}

}  // namespace hone::onnx_io
