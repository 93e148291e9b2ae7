// Trains a network to read digits: glyphs of 8x8 pixels, moved a little and noisy. Run it twice
// with a folder, and end it in between: it goes on where it stood.
//
//   train_digits [FOLDER]

#include <fmt/format.h>

#include "base/rng.h"
#include "learn/layers.h"
#include "learn/losses.h"
#include "learn/trainer.h"

using namespace hone;

// A digit's seven segments: top, left top, right top, middle, left bottom, right bottom, bottom.
constexpr int kSegments[10] = {0b1110111, 0b0010010, 0b1011101, 0b1011011, 0b0111010,
                               0b1101011, 0b1101111, 0b1010010, 0b1111111, 0b1111011};

bool is_lit(int digit, int64_t row, int64_t column) {
  const auto segment = [&](int i) { return (kSegments[digit] >> (6 - i) & 1) != 0; };
  const bool left = column == 0, right = column == 3;
  if (row < 0 || row > 6 || column < 0 || column > 3) return false;
  return (segment(0) && row == 0) || (segment(3) && row == 3) || (segment(6) && row == 6) ||
         (row <= 3 && ((segment(1) && left) || (segment(2) && right))) ||
         (row >= 3 && ((segment(4) && left) || (segment(5) && right)));
}

Result<TensorDataset> make_digits(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> pixels;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    const auto digit = static_cast<int>(rng.below(10));
    const int64_t down = rng.between(0, 1), right = rng.between(0, 4);
    labels.push_back(digit);
    for (int64_t p = 0; p < 64; ++p)
      pixels.push_back((is_lit(digit, p / 8 - down, p % 8 - right) ? 1 : 0) + 0.3 * rng.normal());
  }
  return TensorDataset::make(
      {{"image", Tensor::from_reals(Type::get(DType::f32, {count, 64}), pixels)},
       {"label", Tensor::from_integers(Type::get(DType::i64, {count}), labels)}});
}

Objective digits(Network& net) {
  const Value label = net.input("label");
  Value x = relu(linear(net, "hidden", net.input("image"), 64));
  x = dropout(net, x, 0.1);
  const Value scores = linear(net, "scores", x, 10);
  const Value right = cast(compare("eq", argmax(scores, 1), label), DType::f32);
  return {cross_entropy(scores, label), {{"accuracy", reduce_mean(right, {0})}}};
}

Status run(const std::filesystem::path& folder) {
  const TensorDataset data = HONE_TRY(make_digits(4000, 1));
  const TensorDataset validation = HONE_TRY(make_digits(1000, 2));
  TrainingOptions options;
  options.loader.batch_size = 50;
  options.epochs = 8;
  options.rate = cosine_rate(0.01, 50, 8 * 80);
  options.patience = 3;
  options.folder = folder;
  options.on_epoch = [](const EpochResult& epoch) {
    fmt::print("epoch {}: loss {:.4f}, validation {:.4f}, accuracy {:.3f}\n", epoch.epoch,
               epoch.loss, epoch.validation->loss, epoch.validation->metrics[0].second);
  };
  Trainer trainer = HONE_TRY(Trainer::make(digits, data, HONE_TRY(host_target()), options));
  if (!folder.empty() && HONE_TRY(trainer.resume())) fmt::print("step {}\n", trainer.steps());
  HONE_TRY(trainer.train(&validation));
  return {};
}

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "");
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().to_string());
  return status.ok() ? 0 : static_cast<int>(status.error().code());
}
