#include <algorithm>
#include <array>
#include <optional>

#include "front/onnx/proto.h"

namespace hone::onnx_io {

namespace {

struct TypeRow {
  std::string_view name;
  std::optional<DType> dtype;
};

// In the order of TensorProto.DataType.
constexpr std::array<TypeRow, 29> kTypeRows = {{
    {"UNDEFINED", {}},
    {"FLOAT", DType::f32},
    {"UINT8", DType::u8},
    {"INT8", DType::i8},
    {"UINT16", DType::u16},
    {"INT16", DType::i16},
    {"INT32", DType::i32},
    {"INT64", DType::i64},
    {"STRING", {}},
    {"BOOL", DType::boolean},
    {"FLOAT16", DType::f16},
    {"DOUBLE", DType::f64},
    {"UINT32", DType::u32},
    {"UINT64", DType::u64},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", DType::bf16},
    {"FLOAT8E4M3FN", DType::f8e4m3fn},
    {"FLOAT8E4M3FNUZ", DType::f8e4m3fnuz},
    {"FLOAT8E5M2", DType::f8e5m2},
    {"FLOAT8E5M2FNUZ", DType::f8e5m2fnuz},
    {"UINT4", DType::u4},
    {"INT4", DType::i4},
    {"FLOAT4E2M1", DType::f4e2m1},
    {"FLOAT8E8M0", DType::f8e8m0},
    {"UINT2", DType::u2},
    {"INT2", DType::i2},
    {"FLOAT6E2M3", {}},
    {"FLOAT6E3M2", {}},
}};

bool is_row(int32_t data_type) {
  return data_type >= 0 && static_cast<size_t>(data_type) < kTypeRows.size();
}

}  // namespace

std::string data_type_name(int32_t data_type) {
  if (!is_row(data_type)) return fmt::format("type {}", data_type);
  return std::string(kTypeRows[static_cast<size_t>(data_type)].name);
}

Result<DType> dtype_of(int32_t data_type) {
  if (data_type == onnx::TensorProto::UNDEFINED) return bad_input("the element type is missing");
  if (is_row(data_type)) {
    if (std::optional<DType> dtype = kTypeRows[static_cast<size_t>(data_type)].dtype) return *dtype;
  }
  std::string name = data_type_name(data_type);
  if (!is_row(data_type)) return bad_input("tensors of {} are not supported", name);
  return unsupported("tensors of {} are not supported", name);
}

int32_t data_type_of(DType dtype) {
  const auto* row = std::ranges::find(kTypeRows, std::optional<DType>(dtype), &TypeRow::dtype);
  HONE_CHECK(row != kTypeRows.end(), "{} has no ONNX type", name(dtype));
  return static_cast<int32_t>(row - kTypeRows.begin());
}

}  // namespace hone::onnx_io
