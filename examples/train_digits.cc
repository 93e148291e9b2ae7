// Learns to read noisy digits, and goes on from what the folder has: train_digits [FOLDER]
#include <fmt/format.h>

#include "base/rng.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/trainer.h"

using namespace hone;
// Five rows of three pixels, the first one highest.
constexpr int kDigits[10] = {075557, 026227, 071747, 071717, 055711,
                             074717, 074757, 071111, 075757, 075717};

Result<TensorDataset> make_digits(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> pixels;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(rng.between(0, 9));
    const int64_t down = rng.between(0, 3), right = rng.between(0, 4);
    for (int64_t p = 0; p < 64; ++p) {
      const int64_t row = p / 8 - down, column = p % 8 - right;
      const bool is_inside = row >= 0 && row < 5 && column >= 0 && column < 3;
      const int lit = is_inside ? kDigits[labels.back()] >> (14 - 3 * row - column) & 1 : 0;
      pixels.push_back(lit + 0.3 * rng.normal());
    }
  }
  return TensorDataset::make(
      {{"image", Tensor::from_reals(Type::get(DType::f32, {count, 64}), pixels)},
       {"label", Tensor::from_integers(Type::get(DType::i64, {count}), labels)}});
}

Objective digits(Network& net) {
  const Value label = net.input("label");
  const Value hidden = relu(linear(net, "hidden", net.input("image"), 64));
  const Value scores = linear(net, "scores", dropout(net, hidden, 0.1), 10);
  const Value right = cast(compare("eq", argmax(scores, 1), label), DType::f32);
  return {cross_entropy(scores, label), {{"accuracy", reduce_mean(right, {0})}}};
}

Status run(const std::filesystem::path& folder) {
  const TensorDataset data = HONE_TRY(make_digits(4000, 1)), test = HONE_TRY(make_digits(1000, 2));
  TrainingOptions options = {.rate = cosine_rate(0.01, 50, 8 * 80), .epochs = 8, .folder = folder};
  options.loader.batch_size = 50;
  options.on_epoch = [](const EpochResult& epoch) {
    fmt::print("epoch {}: loss {:.4f}, accuracy {:.3f}\n", epoch.epoch, epoch.loss,
               epoch.validation->metrics[0].second);
  };
  Trainer trainer = HONE_TRY(Trainer::make(digits, data, HONE_TRY(host_target()), options));
  if (!folder.empty() && HONE_TRY(trainer.resume())) fmt::print("step {}\n", trainer.steps());
  HONE_TRY(trainer.train(&test));
  return {};
}

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "");
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().to_string());
  return status.ok() ? 0 : static_cast<int>(status.error().code());
}
