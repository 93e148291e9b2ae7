#include "zoo/random/random_joins.h"

#include <algorithm>

#include "base/rng.h"
#include "ir/builder.h"

namespace hone {
namespace {

constexpr int64_t kMostChannels = 24;

class Joins {
 public:
  explicit Joins(uint64_t seed) : rng_(seed), builder_("joins") {
    const int rank = static_cast<int>(rng_.between(2, 4));
    axis_ = rng_.chance(0.8) ? 1 : rng_.between(0, rank - 1);
    for (int dim = 0; dim < rank; ++dim)
      dims_.push_back(dim < axis_ && rng_.chance(0.8) ? 1 : rng_.between(1, 4));
  }

  Graph run() {
    for (const char* name : {"x", "y"})
      add(computed(builder_.parameter(name, DType::f32, shape(channels()))));
    for (int64_t step = rng_.between(4, 9); step > 0; --step) {
      if (rng_.chance(0.4)) join();
      if (rng_.chance(0.3)) cut();
      if (rng_.chance(0.6)) add(computed(rng_.pick(pool_)));
    }
    join();
    std::vector<Value> outputs;
    for (size_t i = 0; i < pool_.size(); ++i)
      if (!is_read_[i]) outputs.push_back(computed(pool_[i]));
    return std::move(builder_.finish(outputs)).value();
  }

 private:
  int64_t channels() { return rng_.chance(0.8) ? 4 * rng_.between(1, 2) : rng_.between(1, 7); }

  Dims shape(Dim channels) const {
    Dims dims = dims_;
    dims[static_cast<size_t>(axis_)] = channels;
    return dims;
  }

  void add(Value v) {
    pool_.push_back(v);
    is_read_.push_back(false);
  }

  Value read(size_t i) {
    is_read_[i] = true;
    return pool_[i];
  }

  // A value that a kernel computes.
  Value computed(Value x) {
    static constexpr Opcode ops[] = {Opcode::neg, Opcode::abs, Opcode::sort};
    const Opcode op = rng_.pick(ops);
    if (op != Opcode::sort) return builder_.op(op, {x});
    return builder_.op(op, {x}, {{"axis", rng_.between(0, x.rank() - 1)}});
  }

  void join() {
    std::vector<Value> parts;
    int64_t channels = 0;
    for (int64_t count = rng_.between(2, 3); count > 0; --count) {
      const size_t i = rng_.below(pool_.size());
      channels += pool_[i].dim(static_cast<int>(axis_)).value();
      if (channels > kMostChannels) break;
      parts.push_back(rng_.chance(0.3) ? computed(pool_[i]) : read(i));
    }
    if (!parts.empty()) add(builder_.op(Opcode::concat, parts, {{"axis", axis_}}));
  }

  void cut() {
    const Value x = read(rng_.below(pool_.size()));
    const int64_t channels = x.dim(static_cast<int>(axis_)).value();
    const int64_t unit = channels % 4 == 0 ? 4 : 1;
    const int64_t from = unit * rng_.between(0, channels / unit - 1);
    Dims start(dims_.size(), 0), limit = x.dims();
    start[static_cast<size_t>(axis_)] = from;
    limit[static_cast<size_t>(axis_)] = from + unit * rng_.between(1, (channels - from) / unit);
    add(builder_.op(Opcode::slice, {x}, {{"start", start}, {"limit", limit}}));
  }

  Rng rng_;
  Builder builder_;
  int64_t axis_ = 0;
  Dims dims_;  // but for that along which arrays are joined
  std::vector<Value> pool_;
  std::vector<bool> is_read_;  // by place in the pool
};

}  // namespace

Graph random_joins(uint64_t seed) { return Joins(seed).run(); }

}  // namespace hone
