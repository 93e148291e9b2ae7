#include <map>

#include "compile/native_model.h"
#include "front/onnx/onnx.h"
#include "ir/reference/evaluate_model.h"
#include "tests/front/shape_files.h"

// The runs of such files by hone, and how they compare with what the judge says.

namespace hone::shape_files {
namespace {

using shape_judge::Array;
using shape_judge::Kind;

Tensor tensor_of(const Array& x) {
  static const std::map<Kind, DType> kTypes = {{Kind::f32, DType::f32},
                                               {Kind::i32, DType::i32},
                                               {Kind::i64, DType::i64},
                                               {Kind::boolean, DType::boolean}};
  const Type type = Type::get(kTypes.at(x.kind), hone::Dims(x.dims.begin(), x.dims.end()));
  if (x.kind == Kind::f32) return Tensor::from_reals(type, x.values);
  return Tensor::from_integers(type, Ints(x.values.begin(), x.values.end()));
}

std::string text(const Tensor& tensor) {
  std::string text = tensor.type().to_string() + " (";
  for (int64_t i = 0; i < std::min<int64_t>(tensor.elements(), 12); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", tensor.real_at(i));
  return text + (tensor.elements() > 12 ? ", ...)" : ")");
}

bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  for (int64_t i = 0; i < a.elements(); ++i)
    if (a.real_at(i) != b.real_at(i)) return false;
  return true;
}

Judged of_error(const Run& run, const Error& error) {
  if (error.code() == ErrorCode::internal) return {Outcome::wrong, error.to_string()};
  if (run.verdict == Run::Verdict::illegal) return {Outcome::right, error.to_string()};
  if (run.verdict == Run::Verdict::unclear) return {Outcome::unclear, run.why};
  return {Outcome::refused, error.to_string()};
}

Judged judged_outputs(const ShapeFile& file, const Run& run, const std::vector<Tensor>& outputs) {
  if (run.verdict == Run::Verdict::unclear) return {Outcome::unclear, run.why};
  if (run.verdict == Run::Verdict::illegal)
    return {Outcome::wrong, fmt::format("a result, where {}", run.why)};
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = file.proto.graph().output(static_cast<int>(i)).name();
    const Tensor wanted = tensor_of(run.outputs.at(name));
    if (!are_equal(outputs[i], wanted))
      return {Outcome::wrong,
              fmt::format("output {} is {}, must be {}", name, text(outputs[i]), text(wanted))};
  }
  return {Outcome::right, ""};
}

}  // namespace

std::vector<Judged> judged(const ShapeFile& file, bool is_native) {
  std::vector<Judged> all;
  const std::string bytes = file.proto.SerializeAsString();
  try {
    Result<Model> model = parse_onnx(std::as_bytes(std::span(bytes)), "shapes.onnx", ".");
    if (!model.ok()) {
      for (const Run& run : file.runs) all.push_back(of_error(run, model.error()));
      return all;
    }
    std::shared_ptr<const Runnable> native;
    if (is_native) native = NativeModel::make(*model, host_target().value()).value();
    ModelRunner runner(std::move(*model));
    for (const Run& run : file.runs) {
      std::vector<Tensor> inputs;
      for (const onnx::ValueInfoProto& info : file.proto.graph().input())
        inputs.push_back(tensor_of(run.inputs.at(info.name())));
      const Result<std::vector<Tensor>> outputs =
          is_native ? native->run(inputs) : runner.run(inputs, {.numerics = Numerics::rounded});
      all.push_back(outputs.ok() ? judged_outputs(file, run, *outputs)
                                 : of_error(run, outputs.error()));
    }
  } catch (const InternalError& fault) {
    all.push_back({Outcome::wrong, fault.what()});
  }
  return all;
}

void Tally::add(uint64_t seed, const ShapeFile& file, const std::vector<Judged>& judged) {
  for (size_t i = 0; i < judged.size(); ++i) {
    const auto& [outcome, reason] = judged[i];
    const bool is_error = i < file.runs.size() && file.runs[i].verdict == Run::Verdict::illegal;
    if (outcome == Outcome::right) ++right, errors += is_error ? 1 : 0;
    if (outcome == Outcome::unclear) ++unclear;
    if (outcome == Outcome::refused) ++refused;
    if (outcome == Outcome::wrong) ++wrong;
    if (outcome == Outcome::refused || outcome == Outcome::wrong)
      reasons.push_back(fmt::format("seed {}, run {}, {}: {}", seed, i,
                                    outcome == Outcome::wrong ? "wrong" : "refused", reason));
  }
}

std::string Tally::to_string() const {
  return fmt::format("{} right ({} of them errors), {} unclear, {} refused, {} wrong", right,
                     errors, unclear, refused, wrong);
}

}  // namespace hone::shape_files
