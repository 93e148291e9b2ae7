#include <algorithm>
#include <atomic>
#include <climits>

#include "base/interner.h"
#include "base/text.h"
#include "ir/application.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "tensor/demand.h"

namespace hone {
namespace {

// The result types of a composite, or the error and what was demanded.
struct Expanded {
  Result<std::vector<Type>> types;
  std::optional<Demand> demanded = {};
};

// Remembered per (op, operand types): expanding once is enough.
struct Expansion : ApplicationKey {
  mutable std::atomic<const Expanded*> results = nullptr;

  explicit Expansion(ApplicationKey key) : ApplicationKey(std::move(key)) {}
  Expansion(Expansion&& other) noexcept : ApplicationKey(std::move(other)) {}
};

Result<std::vector<Type>> expand_to_types(const Application& app) {
  Builder builder("expansion");
  std::vector<Value> operands;
  for (Type type : app.operands) operands.push_back(type ? builder.parameter("", type) : Value());
  std::vector<Value> results = app.op.def().expand(builder, app.op, operands);
  if (!builder.ok()) return builder.status().error();
  std::vector<Type> types;
  for (Value v : results) types.push_back(v.type());
  return types;
}

const Expanded* expanded(const Application& app) {
  const DemandListener listener;
  Result<std::vector<Type>> types = expand_to_types(app);
  const std::optional<Demand> demanded = types.ok() ? std::nullopt : listener.last();
  return new Expanded{std::move(types), demanded};
}

Result<std::vector<Type>> infer_by_expansion(const Application& app) {
  static Interner<Expansion>& memo = *new Interner<Expansion>();
  const Expansion* entry =
      memo.intern(Expansion({app.op, {app.operands.begin(), app.operands.end()}}));
  const Expanded* known = entry->results.load(std::memory_order_acquire);
  if (known == nullptr) {
    const Expanded* fresh = expanded(app);
    if (entry->results.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
      known = fresh;
    else
      delete fresh;
  }
  if (known->demanded) demand(*known->demanded);
  return known->types;
}

Status check_operands(const Application& app, const OpDef& def) {
  Arity arity = operand_arity(def);
  if (app.count() < arity.min || app.count() > arity.max) {
    std::string wanted = arity.max == arity.min ? fmt::format("{}", arity.min)
                         : arity.max == INT_MAX ? fmt::format("at least {}", arity.min)
                                                : fmt::format("{} to {}", arity.min, arity.max);
    return bad_input("takes {} operands ({}), has {}", wanted, def.operands, app.count());
  }
  std::vector<std::string_view> names = split(def.operands, ',');
  for (int i = 0; i < app.count(); ++i) {
    if (app.has_operand(i)) continue;
    std::string_view operand = trim(names[std::min(static_cast<size_t>(i), names.size() - 1)]);
    if (operand.back() != '?') return bad_input("operand '{}' is absent", operand);
  }
  size_t regions = region_names(def).size();
  if (app.regions.size() != regions)
    return bad_input("takes {} regions, has {}", regions, app.regions.size());
  if (app.count() > 0 && app.has_operand(0) && !def.dtypes.contains(app.operand(0).dtype()))
    return bad_input("operand '{}' has element type {}, which {} does not accept",
                     operand_names(def)[0], name(app.operand(0).dtype()), app.op.name());
  return {};
}

}  // namespace

Result<std::vector<Type>> infer(const Application& app) {
  const OpDef& def = app.op.def();
  auto checked = [&]() -> Result<std::vector<Type>> {
    HONE_TRY(check_operands(app, def));
    return def.infer != nullptr ? def.infer(app) : infer_by_expansion(app);
  };
  Result<std::vector<Type>> types = checked();
  if (!types.ok()) return std::move(types).error().about(app.op.name());
  return types;
}

}  // namespace hone
