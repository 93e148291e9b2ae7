#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/early_code.h"
#include "session/devices.h"
#include "session/native.h"
#include "session/source.h"

// Models that stay loaded and that several threads run at once, as faces that live long have them.

namespace hone {

class ServedModel {
 public:
  // Binds the sizes that the source says. One graph whose sizes are numbers then is compiled at
  // once, others when they are first run, without the face: its progress and token may end before.
  // With devices, they divide the batch of each run.
  static Result<std::unique_ptr<ServedModel>> make(Source source, NativeOptions options,
                                                   const Face& face = {},
                                                   const DeviceOptions& devices = {});

  ~ServedModel();  // stop(); whoever has the runnable may go on

  const std::string& name() const { return model_.name; }
  std::span<const ModelValue> inputs() const { return model_.inputs; }
  std::span<const ModelValue> outputs() const { return model_.outputs; }
  // From any thread. Code is made by one thread at a time; runs go side by side. It has a single()
  // if it was compiled at once. Such a model begins on quick code where the options say so, while a
  // thread makes the real code (compile/early_code.h).
  const std::shared_ptr<const Runnable>& runnable() const { return runnable_; }

  // Waits until its real code is made.
  Status finish(const Face& face = {}) const;
  // Runs stay on the code that there is then, and no thread makes any.
  void stop() const;
  // The plan of a model that was compiled at once, as text.
  Result<std::string> plan_text();
  // As a file .honec of this version of hone; sizes that are open have code for all. One of several
  // devices is a file that as many run; its sizes must be numbers. A model that
  // can be compiled only when data are seen is refused. A name that ends in .onnx or .hone gets the
  // model itself, with the sizes that were bound; other names are refused.
  Status save(const std::filesystem::path& path, std::string_view version);

 private:
  ServedModel(Model model, NativeOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}
  Status compile(const Graph& graph, const Model& given, const Bindings& sizes, const Face& face);
  Status compile_later(const Model& given, const Bindings& sizes, const Face& face);
  Status divide(const DeviceOptions& devices, const Face& face);
  Status shard(const DeviceOptions& devices, const Face& face);
  Error is_open(std::string_view what) const;
  const EarlyCode* early() const;
  Status save_open(const std::filesystem::path& path, std::string_view version);
  Status save_divided(const std::filesystem::path& path, std::string_view version);

  const Model model_;
  const NativeOptions options_;
  std::unique_ptr<Compilation> compilation_;
  std::vector<const PlacedPlan*> plans_;  // by graph, if it was not compiled at once
  std::shared_ptr<const Runnable> runnable_;
  DeviceOptions devices_;  // without names: one device
  std::mutex mutex_;       // guards the compilation
};

}  // namespace hone
