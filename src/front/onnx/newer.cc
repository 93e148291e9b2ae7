#include "front/onnx/newer.h"

#include "base/text.h"
#include "front/onnx/skeleton.h"

namespace hone::onnx_io {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

struct NewerField {
  std::string_view message;
  int number;
  UnknownField::Type type;
};

constexpr int kNodeOverload = 8, kFunctionOverload = 13, kAttributeProto = 11;

// Fields that the schema library does not know and that may be there.
constexpr NewerField kNewer[] = {
    // Read by the functions above.
    {"NodeProto", kNodeOverload, UnknownField::TYPE_LENGTH_DELIMITED},
    {"FunctionProto", kFunctionOverload, UnknownField::TYPE_LENGTH_DELIMITED},
    {"FunctionProto", kAttributeProto, UnknownField::TYPE_LENGTH_DELIMITED},
    {"TensorProto", kPayloadField, UnknownField::TYPE_VARINT},  // our own
    // metadata_props: notes of tools.
    {"NodeProto", 9, UnknownField::TYPE_LENGTH_DELIMITED},
    {"GraphProto", 16, UnknownField::TYPE_LENGTH_DELIMITED},
    {"TensorProto", 16, UnknownField::TYPE_LENGTH_DELIMITED},
    {"ValueInfoProto", 4, UnknownField::TYPE_LENGTH_DELIMITED},
    {"FunctionProto", 14, UnknownField::TYPE_LENGTH_DELIMITED},
    // value_info: types that follow from the nodes.
    {"FunctionProto", 12, UnknownField::TYPE_LENGTH_DELIMITED},
    // Where to run what on which devices; the values are the same anywhere.
    {"NodeProto", 10, UnknownField::TYPE_LENGTH_DELIMITED},
    {"ModelProto", 26, UnknownField::TYPE_LENGTH_DELIMITED},
    // since_version and status, from before functions were part of a release.
    {"FunctionProto", 2, UnknownField::TYPE_VARINT},
    {"FunctionProto", 3, UnknownField::TYPE_VARINT},
};

// The last one holds, as for any field that comes once.
std::string string_field(const UnknownFieldSet& fields, int number) {
  std::string text;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const bool found =
        field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED;
    if (found) text = field.length_delimited();
  }
  return text;
}

bool is_newer(std::string_view message, const UnknownField& field) {
  for (const NewerField& row : kNewer) {
    if (row.message == message && row.number == field.number() && row.type == field.type()) {
      return true;
    }
  }
  return false;
}

// A field that the library knows is among the unknown ones if its value makes no sense.
Error bad_value(const FieldDescriptor& known, const UnknownField& field) {
  const std::string& message = known.containing_type()->name();
  if (known.enum_type() != nullptr && field.type() == UnknownField::TYPE_VARINT) {
    return unsupported("{}.{} is {}, which is not known", message, known.name(),
                       static_cast<int64_t>(field.varint()));
  }
  return bad_input("{}.{} (field {}) has the wrong wire type", message, known.name(),
                   known.number());
}

}  // namespace

std::string overload_of(const onnx::NodeProto& node) {
  return string_field(node.unknown_fields(), kNodeOverload);
}

std::string overload_of(const onnx::FunctionProto& function) {
  return string_field(function.unknown_fields(), kFunctionOverload);
}

Result<std::vector<onnx::AttributeProto>> default_attributes(const onnx::FunctionProto& function) {
  std::vector<onnx::AttributeProto> attributes;
  const UnknownFieldSet& fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() != kAttributeProto) continue;
    onnx::AttributeProto& attribute = attributes.emplace_back();
    if (field.type() != UnknownField::TYPE_LENGTH_DELIMITED ||
        !attribute.ParseFromString(field.length_delimited())) {
      return bad_input("attribute_proto {} is malformed", attributes.size() - 1);
    }
  }
  return attributes;
}

Status check_unknown_fields(const Message& message) {
  const UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (is_newer(type.name(), field)) continue;
    const FieldDescriptor* known = type.FindFieldByNumber(field.number());
    if (known != nullptr) return bad_value(*known, field);
    return unsupported("field {} of {} is not known", field.number(), type.name())
        .with_hint(fmt::format("hone reads the fields of IR versions {} to {}", kOldestIrVersion,
                               kNewestIrVersion));
  }
  return {};
}

std::string message_label(const Message& message, std::string_view field, int index) {
  const FieldDescriptor* name = message.GetDescriptor()->FindFieldByName("name");
  if (name != nullptr && name->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const std::string text = message.GetReflection()->GetString(message, name);
    if (!text.empty()) return fmt::format("{} '{}'", field, escape(text));
  }
  return fmt::format("{} {}", field, index);
}

}  // namespace hone::onnx_io
