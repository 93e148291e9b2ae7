#include "cli/batches.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "front/arrays.h"
#include "search/graph_price.h"

namespace hone::cli {
namespace {

constexpr size_t kMostBatches = 256;  // they are all in memory
constexpr size_t kEachUnseen = 4;
constexpr int64_t kRandomSeen = 3, kRandomUnseen = 2;

Status check_no_nan(const Tensor& tensor, std::string_view from) {
  if (!is_real(tensor.dtype())) return {};
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(tensor.real_at(i)))
      return bad_input("element {} of {} is {}, and calibration needs finite numbers", i,
                       tensor.type().to_string(), tensor.real_at(i))
          .at(std::string(from))
          .with_hint("take the file out of the folder, or repair it");
  return {};
}

Status check_shape(const Graph& graph, const GivenInput& given) {
  for (const ValueId v : graph.inputs())
    if (graph.name(v) == given.name &&
        !std::ranges::equal(graph.type(v).dims(), given.tensor.type().dims()))
      return bad_input("input '{}' is {}, and the array is {}", given.name,
                       graph.type(v).to_string(), given.tensor.type().to_string())
          .at(given.from);
  return {};
}

// The files that have arrays, by name.
Result<std::vector<std::filesystem::path>> files_of(const std::string& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string extension = at->path().extension().string();
    if (extension == ".npz" || extension == ".npy" || extension == ".safetensors")
      files.push_back(at->path());
  }
  if (failed) return bad_input("the folder cannot be read: {}", failed.message()).at(folder);
  if (files.size() < 2)
    return bad_input("{} files with arrays, want at least 2: one is for the check at the end",
                     files.size())
        .at(folder)
        .with_hint("each .npz file has the inputs of one run by name");
  std::ranges::sort(files);
  if (files.size() > kMostBatches) files.resize(kMostBatches);
  return files;
}

// Labels are integers, one per row of the first output of two dims, each the number of a column.
Status check_labels(const Graph& graph, const Tensor& labels, const std::string& from) {
  for (ValueId v : graph.outputs()) {
    const Type type = graph.type(v);
    if (!is_real(type.dtype()) || type.rank() != 2 || type.dim(1).value() < 2) continue;
    const int64_t rows = type.dim(0).value(), columns = type.dim(1).value();
    if (is_real(labels.dtype()) || labels.elements() != rows)
      return bad_input("labels are {}, want an integer for each of {} rows of {}",
                       labels.type().to_string(), rows, type.to_string())
          .at(from);
    for (int64_t i = 0; i < rows; ++i)
      if (labels.integer_at(i) < 0 || labels.integer_at(i) >= columns)
        return bad_input("label {} is {}, and rows have {} elements", i, labels.integer_at(i),
                         columns)
            .at(from);
    return {};
  }
  return bad_input("the model has no output of two dims, so labels say nothing of it").at(from);
}

Result<quantize::Batch> read_batch(const Graph& graph, const std::filesystem::path& path,
                                   const std::string& labels, const Face& face) {
  Given given;
  quantize::Batch batch;
  if (has_named_tensors(path)) {
    for (NamedTensor& each : HONE_TRY(read_named_tensors(path))) {
      if (!labels.empty() && each.name == labels) {
        HONE_TRY(check_labels(graph, each.tensor, fmt::format("{}:{}", path.string(), labels)));
        batch.labels = std::move(each.tensor);
        continue;
      }
      given.inputs.push_back({.name = each.name,
                              .tensor = std::move(each.tensor),
                              .from = fmt::format("{}:{}", path.string(), each.name),
                              .label = "--data"});
    }
  } else {
    if (graph.inputs().size() != 1)
      return bad_input("it has one array, and the model has {} inputs", graph.inputs().size())
          .at(path.string())
          .with_hint("a .npz file has arrays by the names of inputs");
    given.inputs.push_back({.name = std::string(graph.name(graph.inputs()[0])),
                            .tensor = HONE_TRY(read_tensor(path)),
                            .from = path.string(),
                            .label = "--data"});
  }
  for (const GivenInput& input : given.inputs) {
    HONE_TRY(check_shape(graph, input));
    HONE_TRY(check_no_nan(input.tensor, input.from));
  }
  for (ValueId v : graph.inputs())
    if (std::ranges::find(given.inputs, graph.name(v), &GivenInput::name) == given.inputs.end())
      return bad_input("there is no array for the input '{}'", graph.name(v)).at(path.string());
  if (!labels.empty() && !batch.labels)
    return bad_input("there is no array of labels, '{}'", labels).at(path.string());
  batch.inputs = HONE_TRY(resolve_inputs(graph, std::move(given), 0, Engine::native, face)).tensors;
  return batch;
}

}  // namespace

Result<quantize::Batches> batches_of(const Graph& graph, const std::string& folder,
                                     const std::string& labels, int64_t seed, const Face& face) {
  quantize::Batches batches;
  if (folder.empty()) {
    face.note("calibrated on random inputs: ranges and errors of real data may be others");
    Face quiet = face;
    quiet.notice = {};
    for (int64_t i = 0; i < kRandomSeen + kRandomUnseen; ++i) {
      RunInputs inputs = HONE_TRY(resolve_inputs(graph, {}, seed + i, Engine::native, quiet));
      (i < kRandomSeen ? batches.calibration : batches.unseen)
          .push_back({std::move(inputs.tensors)});
    }
    return batches;
  }
  const std::vector<std::filesystem::path> files = HONE_TRY(files_of(folder));
  for (size_t i = 0; i < files.size(); ++i) {
    const bool is_last = i + 1 == files.size() && batches.unseen.empty();
    const bool is_unseen = is_last || i % kEachUnseen == kEachUnseen - 1;
    auto& batch = is_unseen ? batches.unseen : batches.calibration;
    batch.push_back(HONE_TRY(read_batch(graph, files[i], labels, face)));
  }
  return batches;
}

quantize::QuantizeMachine native_machine(const NativeOptions& options, const Cost& cost,
                                         const Face& face) {
  const auto price = std::make_shared<GraphPrice>(options.target, cost,
                                                  GraphPriceOptions{options.threads, face.cancel});
  quantize::QuantizeMachine machine;
  machine.seconds = [price](const Graph& graph) { return price->exact(graph); };
  machine.compile = [&options, face](const Graph& graph) -> Result<quantize::RunGraph> {
    const auto model = std::make_shared<const Model>(model_of(graph));
    const std::shared_ptr<const Runnable> native =
        HONE_TRY(native_model(*model, RunInputs(), options, face));
    const CancelToken* cancel = face.cancel;
    return quantize::RunGraph([model, native, cancel](std::span<const Tensor> inputs) {
      return native->run(inputs, {.cancel = cancel});
    });
  };
  return machine;
}

}  // namespace hone::cli
