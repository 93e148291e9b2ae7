#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "ir/functional.h"
#include "zoo/random/random_graph.h"

namespace hone {

// Reals of parameters and constants are in [-kInputBound, kInputBound].
inline constexpr double kInputBound = 2;

// The state of a random graph while it grows: a pool of values, each with a bound on its size, from
// which recipes take operands.
class Generator {
 public:
  Generator(Builder& builder, Rng rng, const RandomGraphOptions& options, int depth = 0);

  Builder& builder() { return builder_; }
  Rng& rng() { return rng_; }
  const RandomGraphOptions& options() const { return options_; }
  int depth() const { return depth_; }  // > 0 inside of a region

  // ---- Shapes ----
  // Mostly 1 to 6; 0 rarely, and only if it is allowed. A symbol where the options ask for them.
  Dim dim(bool zero_allowed = true);
  int64_t number(int64_t low, int64_t high) { return rng_.between(low, high); }
  Dims shape(int min_rank = 0, int max_rank = 4, bool zero_allowed = true);
  Dims static_shape(int min_rank, int max_rank, bool zero_allowed = false);
  int64_t axis(Value x) { return rng_.between(0, x.rank() - 1); }

  // ---- Operands ----
  Value fresh(DType dtype, const Dims& dims);  // a parameter or a constant
  Value pick(DType dtype);                     // any shape
  Value pick(DType dtype, const Dims& dims);
  Value pick_ranked(DType dtype, int min_rank, int max_rank, bool zero_allowed = true);
  // Static, without empty dims: for ops that need to know sizes or that average.
  Value pick_solid(DType dtype, int min_rank, int max_rank);

  // ---- Ranges ----
  double bound(Value x) const;  // |x| <= bound, for reals
  void set_bound(Value x, double bound);
  Value within(Value x, double limit);    // scaled down to |x| <= limit; integers as they are
  Value positive(Value x, double least);  // |x| + least
  // Small enough to be cast to any element type.
  Value small(Value x);

  // Adds a result to the pool, scaled down if it is too large to go on with.
  void keep(Value x, double bound);
  void keep_like(Value x, Value operand) { keep(x, bound(operand)); }

  // Runs the recipe of the pair.
  void step(OpDType pair);
  void random_step();
  // Values that nothing reads yet.
  std::vector<Value> unread() const;
  // A region body that ends with values of the given types, all bounded by kInputBound.
  std::vector<Value> body(std::span<const Value> arguments, int steps,
                          std::span<const Type> results);

 private:
  struct Entry {
    Value value;
    double bound;
  };
  Builder& builder_;
  Rng rng_;
  const RandomGraphOptions& options_;
  int depth_;
  std::vector<Entry> pool_;
  std::vector<double> bounds_;  // by value id; 0: unknown
};

// How to make one application of an op.
struct Recipe {
  Opcode opcode;
  void (*make)(Generator& g, Opcode opcode, DType dtype);
  bool continuous = true;  // in its real operands
};
inline constexpr bool kJumps = false;  // a recipe that is not continuous
std::span<const Recipe> elementwise_recipes();
// For an elementwise op of one operand that has no row: from [-2, 2], to at most 8, continuous.
extern const Recipe kUnaryRecipe;
std::span<const Recipe> shape_recipes();
std::span<const Recipe> dense_recipes();
std::span<const Recipe> control_recipes();
std::span<const Recipe> composite_recipes();
// HONE_CHECK: every op but the leaves has one.
const Recipe& recipe_of(Opcode opcode);

Tensor random_tensor(Type type, Rng& rng, const Specials& specials = {});

}  // namespace hone
