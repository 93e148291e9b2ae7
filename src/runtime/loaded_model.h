#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/executable.h"
#include "runtime/honec.h"
#include "runtime/many_devices.h"

namespace hone {

// All of a compiled model, ready to run: code for one or several choices of sizes, code for all
// sizes, segments, several devices. Any number of threads may run it at once.
//
// Code for all sizes is made ready when sizes are first met, from what is in memory; the
// kMaxKept that were used last are kept.
//
// With a device in the options, the file's code for GPUs runs there.
class LoadedModel final : public Runnable {
 public:
  static constexpr size_t kMaxKept = 64;

  // The options' sizes mean nothing.
  static Result<std::shared_ptr<const LoadedModel>> load(HonecFile file, HonecOptions options = {});

  const HonecFile& file() const { return file_; }
  std::span<const image::Port> inputs() const override { return file_.inputs(); }
  std::span<const image::Port> outputs() const override { return file_.outputs(); }
  int64_t threads() const override { return threads_; }
  // See HonecFile::is_single.
  const Executable* single() const override { return one_ ? one_->single() : nullptr; }
  // The devices, if the file has a division; else null.
  const ManyDevices* divided() const { return divided_.get(); }
  // The model on a mesh, if the file has one; else null.
  const MeshModel* on_mesh() const { return on_mesh_.get(); }
  // Runs these sizes of HonecFile::sizes(), if they are numbers and of one CPU.
  std::shared_ptr<const Executable> for_sizes(size_t sizes) const;
  // Runs a unit for inputs of these types. An error names the sizes that the file has.
  Result<std::shared_ptr<const Runnable>> executable(uint32_t unit,
                                                     std::span<const Type> inputs) const;

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

 private:
  // A choice of HonecFile::sizes().
  struct Choice {
    size_t program = 0;
    std::shared_ptr<const Runnable> executable;  // null: for all sizes
    OpenImage open;
  };
  struct Made {
    size_t choice = 0;
    std::vector<Type> types;
    std::shared_ptr<const Runnable> executable;
  };

  LoadedModel(HonecFile file, HonecOptions options)
      : file_(std::move(file)), options_(std::move(options)) {}
  Status prepare();
  Status prepare_devices();
  Status prepare_gpu();
  Result<std::shared_ptr<const Runnable>> load(Image image) const;
  Result<std::shared_ptr<const Runnable>> sized(size_t choice, std::span<const Type> types) const;
  // An error.
  Result<std::shared_ptr<const Runnable>> has_no(std::span<const Type> inputs, uint32_t unit) const;

  const HonecFile file_;
  HonecOptions options_;
  int64_t threads_ = 1;
  std::vector<Choice> choices_;
  std::shared_ptr<const Runnable> one_;  // of HonecFile::is_single
  std::shared_ptr<const ManyDevices> divided_;
  std::shared_ptr<const MeshModel> on_mesh_;  // of these devices

  mutable std::mutex mutex_;  // guards what follows
  mutable std::list<Made> made_;
};

// The sizes of the inputs, of each choice that the file has code for: "x 1x16; x 8x16".
std::string choices_text(const HonecFile& file, uint32_t unit = 0);

}  // namespace hone
