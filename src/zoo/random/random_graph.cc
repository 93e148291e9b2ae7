#include "zoo/random/random_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "zoo/random/generator.h"

namespace hone {

const std::vector<OpDType>& legal_pairs() {
  static const std::vector<OpDType>& pairs = *[] {
    auto* all = new std::vector<OpDType>();
    for (int op = 0; op < kOpcodeCount; ++op)
      for (int type = 0; type < kDTypeCount; ++type) {
        OpDType pair{static_cast<Opcode>(op), static_cast<DType>(type)};
        if (is_leaf(pair.opcode)) continue;
        if (op_def(pair.opcode).dtypes.contains(pair.dtype)) all->push_back(pair);
      }
    return all;
  }();
  return pairs;
}

const Recipe& recipe_of(Opcode opcode) {
  static const auto& table = *[] {
    auto* recipes = new std::array<const Recipe*, kOpcodeCount>();
    for (int i = 0; i < kOpcodeCount; ++i) {
      const Opcode opcode = static_cast<Opcode>(i);
      const bool is_unary = is_elementwise(opcode) && operand_arity(op_def(opcode)).max == 1;
      (*recipes)[static_cast<size_t>(i)] = is_unary ? &kUnaryRecipe : nullptr;
    }
    for (std::span<const Recipe> part : {elementwise_recipes(), shape_recipes(), dense_recipes(),
                                         control_recipes(), composite_recipes()})
      for (const Recipe& recipe : part) (*recipes)[static_cast<size_t>(recipe.opcode)] = &recipe;
    return recipes;
  }();
  const Recipe* recipe = table[static_cast<size_t>(opcode)];
  HONE_CHECK(recipe != nullptr, "no recipe makes a random {}", name(opcode));
  return *recipe;
}

Tensor random_tensor(Type type, Rng& rng, const Specials& specials) {
  // Integers are mostly small, as they index and shift; sometimes any bits.
  return with_specials(
      type, specials, rng, [&] { return rng.uniform(-kInputBound, kInputBound); },
      [&] { return rng.chance(0.9) ? rng.between(-8, 8) : static_cast<int64_t>(rng()); });
}

namespace {

// Values that are outputs already, and inputs.
std::vector<Value> repeated_outputs(Builder& builder, std::span<const Value> outputs, Rng& rng) {
  std::vector<Value> more;
  const std::span<const ValueId> inputs = builder.graph().inputs();
  for (int i = 0; i < 2; ++i) {
    if (rng.chance(0.3)) more.push_back(outputs[rng.below(outputs.size())]);
    if (!inputs.empty() && rng.chance(0.3))
      more.emplace_back(&builder, inputs[rng.below(inputs.size())]);
  }
  return more;
}

// Inputs, to outputs of their type: mostly to those that begin with them.
void donate_some(Builder& builder, std::span<const Value> outputs, Rng& rng) {
  const Graph& graph = builder.graph();
  std::vector<ValueId> left(graph.inputs().begin(), graph.inputs().end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span<const ValueId> operands = graph.operands(graph.producer(outputs[i].id()));
    if (operands.empty() || !rng.chance(0.7)) continue;
    std::vector<ValueId> fitting;
    for (ValueId x : left)
      if (graph.type(x) == outputs[i].type()) fitting.push_back(x);
    if (fitting.empty()) continue;
    const bool is_first = std::ranges::find(fitting, operands[0]) != fitting.end();
    const ValueId x = is_first && rng.chance(0.7) ? operands[0] : rng.pick(fitting);
    std::erase(left, x);
    builder.donate({&builder, x}, static_cast<int>(i));
  }
}

}  // namespace

Graph random_graph(const RandomGraphOptions& options) {
  Builder builder("random");
  Generator g(builder, Rng(options.seed * 0x9e3779b97f4a7c15 + 1), options);
  std::vector<OpDType> pairs = legal_pairs();
  if (options.first)
    std::erase_if(pairs, [&](OpDType pair) { return pair.opcode != *options.first; });
  OpDType first = pairs[options.seed % pairs.size()];
  if (!options.continuous || recipe_of(first.opcode).continuous) g.step(first);
  int64_t steps = g.number(options.min_steps, options.max_steps);
  for (int64_t i = 1; i < steps; ++i) g.random_step();
  std::vector<Value> outputs = g.unread();
  if (options.repeats_outputs)
    for (Value more : repeated_outputs(builder, outputs, g.rng())) outputs.push_back(more);
  else
    donate_some(builder, outputs, g.rng());
  Result<Graph> graph = builder.finish(outputs);
  HONE_CHECK(graph.ok(), "random graph {}: {}", options.seed, graph.error().to_string());
  return std::move(*graph);
}

std::vector<Tensor> random_graph_inputs(const Graph& graph, uint64_t seed,
                                        const Specials& specials) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) inputs.push_back(random_tensor(type, rng, specials));
  return inputs;
}

// ---- Generator ----------------------------------------------------------------------------------

Generator::Generator(Builder& builder, Rng rng, const RandomGraphOptions& options, int depth)
    : builder_(builder), rng_(rng), options_(options), depth_(depth) {}

Dim Generator::dim(bool zero_allowed) {
  constexpr int64_t kUsualDim = 6;
  if (options_.symbolic && rng_.chance(0.3)) {
    static const Symbol symbols[] = {Symbol::get("N", 1, 6), Symbol::get("M", 2, 8, 2)};
    return rng_.pick(symbols);
  }
  if (zero_allowed && rng_.chance(0.03)) return 0;
  if (options_.max_dim > kUsualDim && rng_.chance(0.2))
    return rng_.between(kUsualDim + 1, options_.max_dim);
  static constexpr int64_t sizes[] = {1, 1, 2, 2, 3, 3, 4, 5, kUsualDim};
  return rng_.pick(sizes);
}

Dims Generator::shape(int min_rank, int max_rank, bool zero_allowed) {
  Dims dims(static_cast<size_t>(rng_.between(min_rank, max_rank)));
  for (Dim& d : dims) d = dim(zero_allowed);
  return dims;
}

Dims Generator::static_shape(int min_rank, int max_rank, bool zero_allowed) {
  Dims dims = shape(min_rank, max_rank, zero_allowed);
  for (Dim& d : dims)
    if (!d.is_static()) d = rng_.between(1, 4);
  return dims;
}

Value Generator::fresh(DType dtype, const Dims& dims) {
  Type type = Type::get(dtype, dims);
  // Inside of a region every parameter is in the op's signature already.
  bool constant = depth_ > 0 || rng_.chance(0.3);
  Value v;
  if (!constant) {
    v = builder_.parameter("", type);
  } else if (type.is_static()) {
    v = builder_.constant(random_tensor(type, rng_, options_.specials));
  } else {
    const Tensor number = random_tensor(Type::scalar(dtype), rng_, options_.specials);
    v = broadcast_to(builder_.constant(number), dims);
  }
  set_bound(v, kInputBound);
  if (!is_real(dtype) || rng_.chance(0.5)) pool_.push_back({v, kInputBound});
  return v;
}

double Generator::bound(Value x) const {
  return x.id().index < bounds_.size() && bounds_[x.id().index] > 0 ? bounds_[x.id().index]
                                                                    : kInputBound;
}

void Generator::set_bound(Value x, double bound) {
  if (x.id().index >= bounds_.size()) bounds_.resize(x.id().index + 1);
  bounds_[x.id().index] = bound;
}

namespace {

bool fits(Value v, int min_rank, int max_rank, bool zero_allowed, bool static_only) {
  if (v.rank() < min_rank || v.rank() > max_rank) return false;
  if (static_only && !v.type().is_static()) return false;
  return zero_allowed || std::ranges::none_of(v.dims(), [](Dim d) { return d.range().low == 0; });
}

}  // namespace

Value Generator::pick(DType dtype) { return pick_ranked(dtype, 0, 4); }

Value Generator::pick_ranked(DType dtype, int min_rank, int max_rank, bool zero_allowed) {
  for (int attempt = 0; attempt < 8 && !pool_.empty() && rng_.chance(0.85); ++attempt) {
    Entry entry = pool_[rng_.below(pool_.size())];
    if (entry.value.dtype() == dtype && fits(entry.value, min_rank, max_rank, zero_allowed, false))
      return entry.value;
  }
  return fresh(dtype, shape(min_rank, max_rank, zero_allowed));
}

Value Generator::pick_solid(DType dtype, int min_rank, int max_rank) {
  for (int attempt = 0; attempt < 8 && !pool_.empty() && rng_.chance(0.85); ++attempt) {
    Entry entry = pool_[rng_.below(pool_.size())];
    if (entry.value.dtype() == dtype && fits(entry.value, min_rank, max_rank, false, true))
      return entry.value;
  }
  return fresh(dtype, static_shape(min_rank, max_rank));
}

// A value of the type out of the pool, if need be by a reshape or a broadcast of another.
Value Generator::pick(DType dtype, const Dims& dims) {
  Type wanted = Type::get(dtype, dims);
  size_t offset = pool_.empty() ? 0 : rng_.below(pool_.size());
  for (size_t i = 0; i < pool_.size() && rng_.chance(0.95); ++i) {
    Value v = pool_[(i + offset) % pool_.size()].value;
    if (v.dtype() != dtype) continue;
    if (v.type() == wanted) return v;
    Value made;
    if (v.type().elements() == wanted.elements() && rng_.chance(0.5))
      made = reshape(v, dims);
    else if (v.rank() == 0 && rng_.chance(0.5))
      made = broadcast_to(v, dims);
    if (!made) continue;
    set_bound(made, bound(v));
    return made;
  }
  return fresh(dtype, dims);
}

Value Generator::within(Value x, double limit) {
  if (!is_real(x.dtype()) || is_storage_only(x.dtype()) || bound(x) <= limit) return x;
  // A power of two, so that scaling is exact.
  Value scaled = x * std::exp2(std::floor(std::log2(limit / bound(x))));
  set_bound(scaled, limit);
  return scaled;
}

Value Generator::positive(Value x, double least) {
  Value y = unary(Opcode::abs, x) + least;
  set_bound(y, bound(x) + least);
  return y;
}

Value Generator::small(Value x) {
  if (is_real(x.dtype())) return within(x, 8);
  if (is_bool(x.dtype()) || is_storage_only(x.dtype())) return x;
  Value capped = minimum(x, 8);
  return is_signed(x.dtype()) ? maximum(capped, -8) : capped;
}

void Generator::keep(Value x, double bound) {
  set_bound(x, bound);
  if (is_real(x.dtype()) && bound > 64) {
    x = within(x, 8);
    bound = 8;
  }
  Type type = x.type();
  Dim elements = type.elements();
  if (elements.range().high > options_.max_elements) return;
  pool_.push_back({x, bound});
}

void Generator::step(OpDType pair) {
  recipe_of(pair.opcode).make(*this, pair.opcode, pair.dtype);
  HONE_CHECK(builder_.ok(), "random {} of {}: {}", name(pair.opcode), name(pair.dtype),
             builder_.status().error().to_string());
}

void Generator::random_step() {
  const std::vector<OpDType>& pairs = legal_pairs();
  for (;;) {
    OpDType pair = pairs[rng_.below(pairs.size())];
    const bool is_collective = class_of(pair.opcode) == OpClass::collective;
    bool has_region = !op_def(pair.opcode).regions.empty();
    // Regions are kept shallow, and collectives out of them.
    if (depth_ > 0 && (depth_ > 1 || is_collective) && (has_region || is_collective)) continue;
    if (options_.continuous && !recipe_of(pair.opcode).continuous) continue;
    // Follow the types that are in the pool, most of the time.
    bool at_hand =
        std::ranges::any_of(pool_, [&](const Entry& e) { return e.value.dtype() == pair.dtype; });
    if (!at_hand && rng_.chance(0.7)) continue;
    step(pair);
    return;
  }
}

std::vector<Value> Generator::unread() const {
  Users users(builder_.graph());
  std::vector<Value> values;
  for (NodeId n : builder_.graph().nodes()) {
    if (builder_.graph().opcode(n) == Opcode::parameter) continue;
    for (ValueId v : builder_.graph().results(n))
      if (users.of(v).empty()) values.push_back({&builder_, v});
  }
  if (values.empty())
    values.push_back({&builder_, builder_.graph().outputs().empty()
                                     ? ValueId{0}
                                     : builder_.graph().outputs()[0]});
  return values;
}

std::vector<Value> Generator::body(std::span<const Value> arguments, int steps,
                                   std::span<const Type> results) {
  for (Value v : arguments) pool_.push_back({v, kInputBound});
  for (int i = 0; i < steps; ++i) random_step();
  std::vector<Value> outputs;
  for (Type type : results) {
    Dims dims(type.dims().begin(), type.dims().end());
    outputs.push_back(within(pick(type.dtype(), dims), kInputBound));
  }
  return outputs;
}

}  // namespace hone
