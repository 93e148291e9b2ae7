#include "zoo/random/random_convs.h"

#include "base/rng.h"
#include "ir/builder.h"
#include "ir/functional.h"
#include "zoo/random/generator.h"

namespace hone {
namespace {

class Convs {
 public:
  explicit Convs(uint64_t seed) : rng_(seed), builder_("convs"), spatial_(rng_.between(1, 2)) {}

  Graph run() {
    const Dim batch = rng_.chance(0.25) ? Dim(Symbol::get("N", 1, 6)) : Dim(rng_.between(1, 2));
    Dims image = {batch, channels()};
    for (int64_t i = 0; i < spatial_; ++i) image.push_back(rng_.between(3, 12));
    Value x = builder_.parameter("x", DType::f32, image);
    for (int64_t count = rng_.between(1, 3); count > 0; --count) x = then(convolved(x));
    return std::move(builder_.finish({x})).value();
  }

 private:
  // Eights are whole panels of most lanes, which may be cut into parts.
  int64_t channels() { return rng_.chance(0.6) ? 8 * rng_.between(1, 2) : rng_.between(1, 10); }

  Value convolved(Value x) {
    const int64_t seen = x.dim(1).value();
    int64_t groups = rng_.chance(0.4) ? rng_.between(2, 3) : 1;
    if (seen % groups != 0) groups = 1;
    Dims window = {groups * channels(), seen / groups};
    window.resize(window.size() + static_cast<size_t>(spatial_), 3);
    const Value w = builder_.constant(random_tensor(Type::get(DType::f32, window), rng_));
    const Ints padding(static_cast<size_t>(spatial_), 1);
    return builder_.op(Opcode::conv, {x, w},
                       {{"pad_low", padding}, {"pad_high", padding}, {"groups", groups}});
  }

  Value then(Value x) {
    if (rng_.chance(0.4)) {
      const Type type = Type::get(DType::f32, {x.dim(1)});
      x = x + broadcast(builder_.constant(random_tensor(type, rng_)), x.dims(), {1});
    }
    if (rng_.chance(0.3)) x = x + tanh(x);
    return rng_.chance(0.5) ? maximum(x, 0) : x;
  }

  Rng rng_;
  Builder builder_;
  int64_t spatial_;
};

}  // namespace

Graph random_convs(uint64_t seed) { return Convs(seed).run(); }

}  // namespace hone
