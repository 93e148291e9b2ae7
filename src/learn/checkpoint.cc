#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "learn/trainer.h"

// Checkpoints of a Trainer: its tensors and, as metadata, its position and what must be the same
// for the position to mean the same.

namespace hone {
namespace {

using Metadata = std::map<std::string, std::string>;

Result<std::string_view> text_of(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found != metadata.end()) return std::string_view(found->second);
  return bad_input("the file lacks '{}': it is not a checkpoint of training", key)
      .with_hint("Trainer::save writes checkpoints");
}

Status read(const Metadata& metadata, const std::string& key, int64_t& value) {
  const std::string_view text = HONE_TRY(text_of(metadata, key));
  const Result<int64_t> number = parse_int(text);
  if (!number.ok() || *number < 0)
    return bad_input("'{}' is {}, not a natural number", key, hone::quoted(excerpt(text)));
  value = *number;
  return {};
}

Status read(const Metadata& metadata, const std::string& key, double& value) {
  const std::string_view text = HONE_TRY(text_of(metadata, key));
  const Result<double> number = parse_double(text);
  if (!number.ok()) return bad_input("'{}' is {}, not a number", key, hone::quoted(excerpt(text)));
  value = *number;
  return {};
}

// With another of these, training would go on, but not with the numbers that it would have had.
Status check_same(const Metadata& metadata, const std::string& key, const std::string& now) {
  const std::string_view then = HONE_TRY(text_of(metadata, key));
  if (then == now) return {};
  return bad_input("'{}' was {} when the checkpoint was written, and is {} now", key, excerpt(then),
                   now)
      .with_hint("go on with the same, or begin anew in another folder");
}

// A checksum: a file may be as long as it should be, and still be damaged. The second version is of
// all that the metadata says besides, and of names and bytes of the tensors. Checkpoints of older
// versions of hone have the first one, of names and bytes alone.
constexpr std::string_view kContent = "content", kSecond = "2:";

std::string content_of(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  Hasher hasher;
  for (const auto& [key, value] : metadata)
    if (key != kContent) hasher.add(key).add(value);
  for (const NamedTensor& each : tensors) hasher.add(each.name).add(each.tensor.bytes());
  return fmt::format("{:016x}", hasher.value());
}

Status check_content(const Metadata& metadata, std::span<const NamedTensor> tensors) {
  std::string_view then = HONE_TRY(text_of(metadata, std::string(kContent)));
  const bool is_second = consume_prefix(then, kSecond);
  if (then == content_of(is_second ? metadata : Metadata(), tensors)) return {};
  return bad_input("its checksum does not fit: the file is damaged")
      .with_hint("go on from another checkpoint, such as best.safetensors");
}

constexpr std::string_view kSettings[] = {"optimizer",  "seed",    "samples",
                                          "batch size", "buckets", "average"};

}  // namespace

// Numbers are written so that reading them gives the same bits.
Metadata Trainer::metadata() const {
  const Position& p = position_;
  Metadata metadata = {{"optimizer", std::string(options_.update.optimizer->name)},
                       {"average", fmt::format("{}", options_.update.average)},
                       {"seed", fmt::format("{}", options_.seed)},
                       {"samples", fmt::format("{}", data_->size())},
                       {"batch size", fmt::format("{}", loader_.options().batch_size)},
                       {"buckets", join(loader_.options().buckets, " ")},
                       {"step", fmt::format("{}", p.step)},
                       {"epoch", fmt::format("{}", p.epoch)},
                       {"batch", fmt::format("{}", p.batch)},
                       {"loss sum", fmt::format("{}", p.loss_sum)},
                       {"best loss", fmt::format("{}", p.best_loss)},
                       {"best epoch", fmt::format("{}", p.best_epoch)},
                       {"waited", fmt::format("{}", p.waited)}};
  metadata.emplace(kContent, fmt::format("{}{}", kSecond, content_of(metadata, state_)));
  return metadata;
}

Status Trainer::set_metadata(const Metadata& metadata) {
  const Metadata now = this->metadata();
  for (std::string_view key : kSettings)
    HONE_TRY(check_same(metadata, std::string(key), now.at(std::string(key))));
  Position p;
  HONE_TRY(read(metadata, "step", p.step));
  HONE_TRY(read(metadata, "epoch", p.epoch));
  HONE_TRY(read(metadata, "batch", p.batch));
  HONE_TRY(read(metadata, "loss sum", p.loss_sum));
  HONE_TRY(read(metadata, "best loss", p.best_loss));
  HONE_TRY(read(metadata, "best epoch", p.best_epoch));
  HONE_TRY(read(metadata, "waited", p.waited));
  if (p.batch > loader_.batches())
    return bad_input("'batch' is {}, but an epoch has {} batches", p.batch, loader_.batches());
  position_ = p;
  return {};
}

Status Trainer::save(const std::filesystem::path& path) {
  HONE_TRY(read_back());
  return write_safetensors(path, {.metadata = metadata(), .tensors = state_});
}

Status Trainer::load(const std::filesystem::path& path) {
  const Safetensors file = HONE_TRY(read_safetensors(path));
  std::vector<NamedTensor> state;
  for (const NamedTensor& each : state_) {
    const Tensor* found = file.find(each.name);
    if (found == nullptr)
      return bad_input("the file lacks the tensor '{}', which the network has", each.name)
          .within(path.native());
    if (found->type() != each.tensor.type())
      return bad_input("tensor '{}' is {}, but the network's is {}", each.name,
                       found->type().to_string(), each.tensor.type().to_string())
          .within(path.native());
    // A copy: the file may be replaced, and steps write into their state.
    state.push_back({each.name, Tensor::copy_of(found->type(), found->bytes())});
  }
  if (file.tensors.size() != state.size())
    return bad_input("the file has {} tensors, but the network's state has {}", file.tensors.size(),
                     state.size())
        .within(path.native());
  Status status = check_content(file.metadata, state);
  if (status.ok()) status = set_metadata(file.metadata);
  if (!status.ok()) return Error(status.error()).within(path.native());
  state_ = std::move(state);
  if (on_gpu_) on_gpu_->forget();
  return {};
}

Result<bool> Trainer::resume() {
  if (options_.folder.empty()) return usage_error("the trainer has no folder to resume from");
  if (!std::filesystem::exists(last())) return false;
  HONE_TRY(load(last()));
  return true;
}

}  // namespace hone
