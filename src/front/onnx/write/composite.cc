#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "front/onnx/write/registry.h"
#include "ir/functional.h"

// Composites that ONNX has an op for. An export returns false where that op means something else,
// or does not take the element type; the composite is then spelled out.

namespace hone::onnx_io {
namespace {

constexpr DTypeSet kPlainReal = {DType::f64, DType::f32, DType::f16};

bool is_plain_real(Emit& e) { return kPlainReal.contains(e.type(0).dtype()); }

int64_t axis_of(Emit& e) {
  const int64_t axis = e.op().integer("axis");
  return axis < 0 ? axis + e.rank(0) : axis;
}

bool along_axis(Emit& e, std::string_view op) {
  return is_plain_real(e) && e.result(op, {e.in(0)}, {{"axis", axis_of(e)}});
}

// A number that the file, which holds floats, gives back as it was written.
bool survives(double value) {
  const float rounded = static_cast<float>(value);
  Result<double> again = parse_double(fmt::format("{}", rounded));
  return again.ok() && *again == value;
}

bool normalized(Emit& e, std::string_view op, Attributes attributes) {
  const double epsilon = e.op().real("epsilon");
  if (!is_plain_real(e) || !survives(epsilon)) return false;
  attributes.push_back({"epsilon", epsilon});
  return e.result(op, e.all(), attributes);
}

}  // namespace

// ---- Activations -------------------------------------------------------------------------------

bool export_relu(Emit& e) {
  const DType dtype = e.type(0).dtype();
  const bool is_known =
      is_plain_real(e) || (is_signed(dtype) && is_integer(dtype) && e.opset() >= 14);
  return is_known && e.result("Relu", {e.in(0)});
}

bool export_gelu(Emit& e) {
  const std::string_view form = e.op().word("form") == "tanh" ? "tanh" : "none";
  return is_plain_real(e) && e.result("Gelu", {e.in(0)}, {{"approximate", form}});
}

bool export_hard_sigmoid(Emit& e) {
  const double alpha = e.op().real("alpha"), beta = e.op().real("beta");
  if (!is_plain_real(e)) return false;
  // The slope of PyTorch, 1/6, is rounded by every exporter.
  if (static_cast<double>(static_cast<float>(alpha)) != alpha && !survives(alpha) &&
      alpha != 1.0 / 6)
    return false;
  return survives(beta) && e.result("HardSigmoid", {e.in(0)}, {{"alpha", alpha}, {"beta", beta}});
}

bool export_hard_swish(Emit& e) { return is_plain_real(e) && e.result("HardSwish", {e.in(0)}); }
bool export_mish(Emit& e) { return is_plain_real(e) && e.result("Mish", {e.in(0)}); }
bool export_softplus(Emit& e) { return is_plain_real(e) && e.result("Softplus", {e.in(0)}); }

bool export_prelu(Emit& e) {
  const DType dtype = e.type(0).dtype();
  const bool is_known = is_plain_real(e) || (is_integer(dtype) && bits(dtype) >= 32);
  return is_known && e.result("PRelu", e.all());
}

bool export_softmax(Emit& e) { return along_axis(e, "Softmax"); }
bool export_log_softmax(Emit& e) { return along_axis(e, "LogSoftmax"); }

// ---- Norms -------------------------------------------------------------------------------------

bool export_layer_norm(Emit& e) {
  return e.has(1) && normalized(e, "LayerNormalization", {{"axis", axis_of(e)}});
}

bool export_batch_norm(Emit& e) {
  return axis_of(e) == 1 && normalized(e, "BatchNormalization", {});
}

bool export_instance_norm(Emit& e) {
  return e.rank(0) >= 3 && normalized(e, "InstanceNormalization", {});
}

bool export_group_norm(Emit& e) {
  return normalized(e, "GroupNormalization", {{"num_groups", e.op().integer("groups")}});
}

bool export_lrn(Emit& e) {
  const double alpha = e.op().real("alpha"), beta = e.op().real("beta"), bias = e.op().real("bias");
  if (!is_plain_real(e) || !survives(alpha) || !survives(beta) || !survives(bias)) return false;
  return e.result(
      "LRN", {e.in(0)},
      {{"size", e.op().integer("size")}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}});
}

// ---- Recurrent layers --------------------------------------------------------------------------

namespace {

struct NamedFunction {
  std::string_view ours, theirs;
};
// Ops with parameters are written out where these are given.
constexpr NamedFunction kNamedFunctions[] = {
    {"sigmoid", "Sigmoid"},   {"tanh", "Tanh"},         {"relu", "Relu"},
    {"softsign", "Softsign"}, {"softplus", "Softplus"}, {"hard_sigmoid", "HardSigmoid"},
};

std::optional<std::vector<std::string>> activations(Emit& e) {
  std::vector<std::string> names;
  const std::string& list = e.op().word("activations");
  if (list.empty()) return names;
  for (std::string_view name : split(list, ',')) {
    auto at = std::find_if(std::begin(kNamedFunctions), std::end(kNamedFunctions),
                           [&](const NamedFunction& f) { return f.ours == trim(name); });
    if (at == std::end(kNamedFunctions)) return std::nullopt;
    names.emplace_back(at->theirs);
  }
  return names;
}

bool recurrent(Emit& e, std::string_view op, size_t functions, Attributes attributes) {
  std::optional<std::vector<std::string>> names = activations(e);
  const Dim hidden = e.type(2).dim(2);
  const double clip = e.op().real("clip");
  if (!is_plain_real(e) || !names || !hidden.is_static() || !survives(clip)) return false;
  const std::string& direction = e.op().word("direction");
  // A list for one direction serves both.
  if (direction == "bidirectional" && names->size() == functions)
    names->insert(names->end(), names->begin(), names->begin() + static_cast<int64_t>(functions));
  attributes.push_back({"direction", std::string_view(direction)});
  attributes.push_back({"hidden_size", hidden.value()});
  if (!names->empty()) attributes.push_back({"activations", *names});
  if (clip != 0) attributes.push_back({"clip", clip});
  Names operands = e.all();
  if (e.has(4) && e.type(4).dtype() != DType::i32) operands[4] = e.cast(e.in(4), DType::i32);
  return e.results(op, operands, attributes);
}

}  // namespace

bool export_lstm(Emit& e) {
  return recurrent(e, "LSTM", 3, {{"input_forget", int64_t{e.op().flag("input_forget")}}});
}
bool export_gru(Emit& e) {
  return recurrent(e, "GRU", 2,
                   {{"linear_before_reset", int64_t{e.op().flag("linear_before_reset")}}});
}
bool export_rnn(Emit& e) { return recurrent(e, "RNN", 1, {}); }

// ---- Contractions, sampling --------------------------------------------------------------------

namespace {

// Every letter stands for one size: none stretches.
bool has_equal_sizes(Emit& e) {
  const std::string& equation = e.op().word("equation");
  if (equation.find('.') != std::string::npos) return false;
  std::map<char, Dim> sizes;
  size_t operand = 0;
  int axis = 0;
  for (char c : equation.substr(0, equation.find("->"))) {
    if (c == ',') ++operand, axis = 0;
    if (c == ',' || c == ' ') continue;
    const Dim size = e.type(operand).dim(axis++);
    if (!(sizes.emplace(c, size).first->second == size)) return false;
  }
  return true;
}

}  // namespace

bool export_einsum(Emit& e) {
  const DType dtype = e.type(0).dtype();
  const bool is_known = is_plain_real(e) || (is_integer(dtype) && bits(dtype) >= 32);
  return is_known && has_equal_sizes(e) &&
         e.result("Einsum", e.all(), {{"equation", std::string_view(e.op().word("equation"))}});
}

namespace {

// The sizes that ONNX computes from the scales are the result's.
bool gives_sizes(Emit& e, const std::vector<double>& scales) {
  for (size_t i = 0; i < scales.size(); ++i) {
    const Dim in = e.type(0).dim(static_cast<int>(i));
    const Dim out = e.op().dims("sizes")[i];
    if (!in.is_static() || !out.is_static()) return false;
    const float scale = static_cast<float>(scales[i]);
    if (static_cast<double>(scale) != scales[i]) return false;
    if (std::floor(static_cast<float>(in.value()) * scale) != static_cast<float>(out.value()))
      return false;
  }
  return true;
}

}  // namespace

bool export_resize(Emit& e) {
  const Op op = e.op();
  const std::vector<double>& scales = op.reals("scales");
  const std::string& coordinates = op.word("coordinates");
  if (!is_plain_real(e) && op.word("mode") != "nearest") return false;
  if (op.flag("antialias") && e.opset() < 18) return false;
  if (coordinates == "half_pixel_symmetric" && e.opset() < 19) return false;
  if (!scales.empty() && !gives_sizes(e, scales)) return false;
  Attributes attributes = {{"mode", std::string_view(op.word("mode"))},
                           {"coordinate_transformation_mode", std::string_view(coordinates)}};
  if (op.word("mode") == "nearest")
    attributes.push_back({"nearest_mode", std::string_view(op.word("nearest"))});
  if (op.word("mode") == "cubic") attributes.push_back({"cubic_coeff_a", op.real("cubic_a")});
  if (op.flag("exclude_outside")) attributes.push_back({"exclude_outside", int64_t{1}});
  if (op.flag("antialias")) attributes.push_back({"antialias", int64_t{1}});
  if (op.real("extrapolation") != 0)
    attributes.push_back({"extrapolation_value", op.real("extrapolation")});
  auto floats = [&](const std::vector<double>& values) {
    const Type type = Type::get(DType::f32, {static_cast<int64_t>(values.size())});
    return e.constant(Tensor::from_reals(type, values));
  };
  Names operands = {e.in(0), op.reals("roi").empty() ? "" : floats(op.reals("roi"))};
  operands.push_back(scales.empty() ? "" : floats(scales));
  if (scales.empty()) operands.push_back(e.dims(op.dims("sizes")));
  return e.result("Resize", operands, attributes);
}

bool export_global_pool(Emit& e) {
  const std::string_view op = e.op().word("kind") == "max" ? "GlobalMaxPool" : "GlobalAveragePool";
  return is_plain_real(e) && e.rank(0) >= 3 && e.result(op, {e.in(0)});
}

// ---- Indices -----------------------------------------------------------------------------------

bool export_one_hot(Emit& e) {
  std::string values = e.in(1);
  const DType dtype = e.result_type().dtype();
  if (values.empty()) values = e.constant(Tensor::from_integers(Type::get(dtype, {2}), Ints{0, 1}));
  return e.result("OneHot", {e.in(0), e.dim(e.op().dims("depth")[0]), values},
                  {{"axis", e.op().integer("axis")}});
}

bool export_top_k(Emit& e) {
  const DType dtype = e.type(0).dtype();
  if (!is_plain_real(e) && (!is_integer(dtype) || bits(dtype) < 32)) return false;
  return e.results("TopK", {e.in(0), e.dim(e.op().dims("k")[0])},
                   {{"axis", axis_of(e)}, {"largest", int64_t{e.op().flag("largest")}}});
}

bool export_depth_to_space(Emit& e) {
  const std::string_view mode = e.op().word("mode") == "crd" ? "CRD" : "DCR";
  return e.result("DepthToSpace", {e.in(0)},
                  {{"blocksize", e.op().integer("block")}, {"mode", mode}});
}

bool export_space_to_depth(Emit& e) {
  return e.result("SpaceToDepth", {e.in(0)}, {{"blocksize", e.op().integer("block")}});
}

// ---- Quantization ------------------------------------------------------------------------------

namespace {

constexpr DTypeSet kBytes = {DType::i8, DType::u8};
constexpr DTypeSet kNarrowTypes = {DType::i8,  DType::u8, DType::i16,
                                   DType::u16, DType::i4, DType::u4};

// The types and the granularity that the opset's ops know. `quantized`: the narrow type.
bool knows(Emit& e, DType quantized, DType real) {
  const DTypeSet types = e.opset() >= 21 ? kNarrowTypes : kBytes;
  const bool is_known = types.contains(quantized);
  const bool is_real = real == DType::f32 || (real == DType::f16 && e.opset() >= 19);
  return is_known && is_real && (e.op().integer("block") == 0 || e.opset() >= 21);
}

Attributes granularity(Emit& e) {
  Attributes attributes = {{"axis", axis_of(e)}};
  const int64_t block = e.op().integer("block");
  if (block != 0) attributes.push_back({"block_size", block});
  return attributes;
}

}  // namespace

bool export_quantize(Emit& e) {
  const DType dtype = e.result_type().dtype();
  if (!knows(e, dtype, e.type(1).dtype())) return false;
  Attributes attributes = granularity(e);
  Names operands = e.all();
  // Without a zero point the type is the attribute's; before that existed, the zero point's.
  if (!e.has(2) && dtype != DType::u8) {
    if (e.opset() >= 21) {
      attributes.push_back({"output_dtype", int64_t{data_type_of(dtype)}});
    } else {
      if (!e.type(1).is_static()) return false;
      operands.resize(3);
      operands[2] = e.constant(Tensor::zeros(e.type(1).with_dtype(dtype)));
    }
  }
  return e.result("QuantizeLinear", operands, attributes);
}

bool export_dequantize(Emit& e) {
  return knows(e, e.type(0).dtype(), e.type(1).dtype()) &&
         e.result("DequantizeLinear", e.all(), granularity(e));
}

}  // namespace hone::onnx_io
