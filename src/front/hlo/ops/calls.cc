#include <algorithm>

#include "base/text.h"
#include "front/hlo/importer.h"
#include "front/hlo/library_calls.h"
#include "front/hlo/literal.h"

// Calls of what a program does not contain: the checks of tests, and annotations.

namespace hone::hlo {
namespace {

// Annotations: the operand as it is.
constexpr std::string_view kIdentities[] = {"Sharding",
                                            "xla.sdy.FuncResultSharding",
                                            "annotate_device_placement",
                                            "LayoutConstraint",
                                            "MoveToDevice",
                                            "MoveToHost"};

std::vector<Value> expect(Node& n, CheckRule rule, double most) {
  const Value got = n.in(0);
  if (!got.type().is_static()) n.refuse(unsupported("of sizes that are open is not handled"));
  const Attribute* literal = n.find("value");
  Value want;
  if (literal != nullptr) {
    n.need(1);
    const Type type = got.type();
    if (literal->type.kind == ValueType::Kind::tensor && literal->type.type != type)
      n.refuse(bad_input("the value is {}, the answer {}", type.to_string(),
                         literal->type.type.to_string()));
    const Literal read = read_literal(n.importer().program(), *literal, type);
    want = n.builder().constant(read.tensor);
    if (read.splat) want = broadcast(want, Dims(type.dims().begin(), type.dims().end()), {});
  } else {
    n.need(2);
    want = n.in(1);
    if (want.type() != got.type())
      n.refuse(bad_input("the value is {}, the answer {}", got.type().to_string(),
                         want.type().to_string()));
  }
  n.importer().add_check(n, {rule, most, {}}, got, want);
  return {};
}

// A condition on sizes. Its message has {0} and so on where the numbers go.
std::vector<Value> asserted(Node& n) {
  const std::optional<Dims> holds = n.importer().known_dims(n.builder(), n.in(0));
  if (!holds || !holds->at(0).is(0)) return {};
  std::string text(n.word("error_message"));
  for (size_t i = 1; i < n.operands().size(); ++i) {
    const std::string place = fmt::format("{{{}}}", i - 1);
    const size_t at = text.find(place);
    if (at != std::string::npos) text.replace(at, place.size(), n.known_dims(i).at(0).to_string());
  }
  n.refuse(bad_input("the sizes do not fit the program: {}", excerpt(text)));
}

// A shard_map in other words than Shardy's region: its body has the shapes of a device, between
// calls that change shapes.
constexpr std::string_view kEdgesOfShardMaps[] = {"SPMDFullToShardShape", "SPMDShardToFullShape",
                                                  "sdy.GlobalToLocalShape",
                                                  "sdy.LocalToGlobalShape"};

void refuse_shard_map(const Node& n, std::string_view target) {
  for (const std::string_view edge : kEdgesOfShardMaps)
    if (target.ends_with(edge))
      n.refuse(unsupported("'{}', the edge of a shard_map, is not handled", excerpt(target))
                   .with_hint("take the text of jax.jit(f).lower(...).as_text(), with "
                              "jax_use_shardy_partitioner on: it has sdy.manual_computation"));
}

// A call of another library. The model can be looked at, but not run: zeros stand for the results.
std::vector<Value> foreign_call(Node& n, std::string_view target) {
  const auto refusal = [&] {
    return unsupported("a call of '{}', which is not part of the program", excerpt(target));
  };
  if (target.empty() || n.importer().checks != nullptr || n.frame().lifted != nullptr)
    n.refuse(refusal());
  n.read_all();
  std::vector<Value> results;
  const auto add = [&](const ValueType& type, const auto& self) -> void {
    if (type.kind == ValueType::Kind::foreign) n.refuse(refusal());
    if (type.kind == ValueType::Kind::tensor) {
      if (!type.type.is_static()) n.refuse(refusal());
      const Dims dims(type.type.dims().begin(), type.type.dims().end());
      results.push_back(cast(n.builder().full(DType::i64, dims, 0), type.type.dtype()));
    }
    for (const ValueType& part : type.parts) self(part, self);
  };
  for (const ValueType& type : n.instruction().results) add(type, add);
  n.importer().add_foreign_call(target, n.instruction().offset);
  return results;
}

}  // namespace

std::vector<Value> map_expect_eq(Node& n) { return expect(n, CheckRule::equal, 0); }

std::vector<Value> map_expect_close(Node& n) {
  return expect(n, CheckRule::close, n.real("max_ulp_difference", 1));
}

std::vector<Value> map_expect_almost_eq(Node& n) {
  const bool with_literal = n.instruction().name.ends_with("_const");
  return expect(n, CheckRule::almost, n.real("tolerance", with_literal ? 1e-4 : 1e-3));
}

std::vector<Value> map_custom_call(Node& n) {
  const std::string_view target = n.word("callee|call_target_name|custom_call_target");
  if (target == "check.expect_eq") return expect(n, CheckRule::equal, 0);
  if (target == "check.expect_close") return expect(n, CheckRule::close, 3);
  if (target == "check.expect_almost_eq") return expect(n, CheckRule::almost, 1e-3);
  if (std::ranges::find(kIdentities, target) != std::ranges::end(kIdentities)) return n.operands();
  if (target == "shape_assertion") return asserted(n);
  refuse_shard_map(n, target);
  if (target == "stablehlo.dynamic_reduce_window") return dynamic_reduce_window(n);
  if (target == "lapack_spotrf_ffi" || target == "lapack_dpotrf_ffi") return lapack_cholesky(n);
  if (target == "lapack_strsm_ffi" || target == "lapack_dtrsm_ffi") return lapack_triangle(n);
  return foreign_call(n, target);
}

}  // namespace hone::hlo
