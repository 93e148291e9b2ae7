#include "runtime/hone.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "base/text.h"
#include "cache/compile_cache.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/loaded_model.h"

// The C interface. No exception leaves it.

struct hone_error {
  hone_code code;
  std::string text;
  std::string hint;
};

namespace hone {
namespace {

constexpr hone_type number_of(DType type) { return static_cast<hone_type>(type) + 1; }
static_assert(number_of(DType::f64) == HONE_F64 && number_of(DType::bf16) == HONE_BF16);
static_assert(number_of(DType::f8e4m3fn) == HONE_F8E4M3FN);
static_assert(number_of(DType::f8e4m3fnuz) == HONE_F8E4M3FNUZ);
static_assert(number_of(DType::f8e5m2) == HONE_F8E5M2);
static_assert(number_of(DType::f8e5m2fnuz) == HONE_F8E5M2FNUZ);
static_assert(number_of(DType::f8e8m0) == HONE_F8E8M0 && number_of(DType::f4e2m1) == HONE_F4E2M1);
static_assert(number_of(DType::i64) == HONE_I64 && number_of(DType::i2) == HONE_I2);
static_assert(number_of(DType::u64) == HONE_U64 && number_of(DType::u2) == HONE_U2);
static_assert(number_of(DType::boolean) == HONE_BOOL && kDTypeCount == HONE_BOOL);
static_assert(static_cast<hone_code>(ErrorCode::usage) == HONE_USAGE &&
              static_cast<hone_code>(ErrorCode::bad_input) == HONE_BAD_INPUT &&
              static_cast<hone_code>(ErrorCode::unsupported) == HONE_UNSUPPORTED &&
              static_cast<hone_code>(ErrorCode::limit) == HONE_LIMIT &&
              static_cast<hone_code>(ErrorCode::internal) == HONE_INTERNAL);

// As a hone_port has them.
Ints dims_of(Type type) {
  Ints dims;
  for (Dim dim : type.dims()) dims.push_back(dim.is_static() ? dim.value() : -1);
  return dims;
}

// The data that a hone_port points to.
class Ports {
 public:
  explicit Ports(std::span<const image::Port> ports) : ports_(ports.begin(), ports.end()) {
    for (const image::Port& port : ports_) dims_.push_back(dims_of(port.type));
    for (size_t i = 0; i < ports_.size(); ++i) {
      const Type type = ports_[i].type;
      views_.push_back({.name = ports_[i].name.c_str(),
                        .type_name = name(type.dtype()).data(),
                        .type = number_of(type.dtype()),
                        .rank = type.rank(),
                        .dims = dims_[i].data(),
                        .bytes = type.is_static() ? static_cast<size_t>(type.static_bytes()) : 0});
    }
  }
  Ports(const Ports&) = delete;

  size_t count() const { return views_.size(); }
  Type type(size_t index) const { return ports_[index].type; }
  bool is_static() const {
    return std::ranges::all_of(ports_, [](const image::Port& one) { return one.type.is_static(); });
  }
  const hone_port* at(size_t index) const {
    return index < views_.size() ? &views_[index] : nullptr;
  }
  int64_t find(const char* name) const {
    const auto found = name == nullptr
                           ? ports_.end()
                           : std::ranges::find(ports_, std::string_view(name), &image::Port::name);
    return found == ports_.end() ? -1 : found - ports_.begin();
  }

 private:
  std::vector<image::Port> ports_;
  std::vector<Ints> dims_;
  std::vector<hone_port> views_;
};

hone_code fail(hone_error** out, hone_code code, std::string text, std::string hint = "") {
  if (out != nullptr) *out = new (std::nothrow) hone_error{code, std::move(text), std::move(hint)};
  return code;
}

hone_code fail(hone_error** out, const Error& error) {
  const std::string text =
      error.where().empty() ? error.what() : fmt::format("{} ({})", error.what(), error.where());
  return fail(out, static_cast<hone_code>(error.code()), text, error.hint());
}

// The call's result as a code. A fault, or memory that ran out, becomes an error, too.
template <class Call>
hone_code guarded(hone_error** out, const Call& call) noexcept {
  if (out != nullptr) *out = nullptr;
  try {
    const Status status = call();
    return status.ok() ? HONE_OK : fail(out, status.error());
  } catch (const std::bad_alloc&) {
    return fail(out, HONE_LIMIT, "there is not enough memory");
  } catch (const std::exception& fault) {
    return fail(out, HONE_INTERNAL, fault.what());
  }
}

// Options as they were when struct_size was this.
constexpr size_t kFirstOptions = offsetof(hone_load_options, verify) + sizeof(int32_t);
constexpr size_t kDeviceOptions = offsetof(hone_load_options, devices) + sizeof(int64_t);
constexpr size_t kGpuOptions = offsetof(hone_load_options, driver) + sizeof(const char*);
constexpr size_t kCacheOptions = offsetof(hone_load_options, cache) + sizeof(const char*);

// The GPU that the options name; null: none.
Result<std::shared_ptr<const CudaDevice>> gpu_of(const hone_load_options& given) {
  if (given.struct_size < kGpuOptions || given.device == nullptr ||
      std::string_view(given.device) == "cpu")
    return std::shared_ptr<const CudaDevice>();
  const std::optional<int> number = HONE_TRY(named_gpu_number(given.device, "device"));
  if (!number)
    return usage_error("there is no device '{}'", excerpt(given.device))
        .with_hint("'cpu' is the processor, and 'cuda' or 'cuda:1' is a GPU");
  return open_cuda_device(given.driver == nullptr ? std::string(kCudaLibrary) : given.driver,
                          *number);
}

Result<HonecOptions> options_of(const hone_load_options* given) {
  HonecOptions options;
  if (given == nullptr) return options;
  if (given->struct_size < kFirstOptions)
    return usage_error("the options have {} bytes; the least is {}", given->struct_size,
                       kFirstOptions);
  if (given->threads < 0 || given->threads > Team::kMaxThreads)
    return usage_error("{} threads", given->threads);
  if (given->memory_limit < 0)
    return usage_error("a limit of {} bytes is not possible", given->memory_limit);
  if (given->threads > 0) options.threads = given->threads;
  if (given->memory_limit > 0) options.memory_limit = given->memory_limit;
  options.device = HONE_TRY(gpu_of(*given));
  if (options.device != nullptr && given->struct_size >= kCacheOptions && given->cache != nullptr)
    options.cubins = cubin_store(std::shared_ptr<CompileCache>(
        HONE_TRY(CompileCache::open(given->cache))));
  return options;
}

// Devices that run the file.
int64_t devices_in(const HonecFile& file) {
  return file.division() == nullptr ? 1 : std::ssize(file.division()->shares);
}

// The file is for as many devices as the options say.
Status check_devices_in(const HonecFile& file, const hone_load_options* given) {
  if (given == nullptr || given->struct_size < kDeviceOptions || given->devices == 0) return {};
  if (given->devices < 0) return usage_error("{} devices", given->devices);
  if (given->devices == devices_in(file)) return {};
  return unsupported("the file is for {} devices, and {} are asked for", devices_in(file),
                     given->devices)
      .within(file.path())
      .with_hint(fmt::format("it has no graph that could be divided; 'hone compile MODEL "
                             "--devices {} -o FILE.honec' makes one that fits",
                             given->devices));
}

}  // namespace
}  // namespace hone

struct hone_model {
  // For one choice of sizes.
  struct Sized {
    Sized(const hone::HonecFile::Program& program, std::shared_ptr<const hone::Executable> loaded)
        : executable(std::move(loaded)), inputs(program.inputs), outputs(program.outputs) {}

    std::shared_ptr<const hone::Executable> executable;
    hone::Ports inputs;
    hone::Ports outputs;
  };

  explicit hone_model(std::shared_ptr<const hone::LoadedModel> model)
      : loaded(std::move(model)),
        all_inputs(loaded->file().inputs()),
        all_outputs(loaded->file().outputs()) {
    const hone::HonecFile& file = loaded->file();
    for (size_t i = 0; file.segments() == nullptr && i < file.sizes().size(); ++i)
      if (auto executable = loaded->for_sizes(i); executable != nullptr)
        sizes.push_back(
            std::make_unique<const Sized>(file.programs()[file.sizes()[i]], std::move(executable)));
    if (file.is_single()) gpu = on_gpu();
  }

  // The code of a model of one graph there; null: the processor has it.
  std::shared_ptr<const hone::CudaExecutable> on_gpu() const {
    std::vector<hone::Type> types;
    for (size_t i = 0; i < all_inputs.count(); ++i) types.push_back(all_inputs.type(i));
    const auto code = loaded->executable(0, types);
    return code.ok() ? std::dynamic_pointer_cast<const hone::CudaExecutable>(*code) : nullptr;
  }

  const Sized* at(size_t index) const {
    return index < sizes.size() ? sizes[index].get() : nullptr;
  }
  const hone::Ports& inputs() const { return sizes.empty() ? all_inputs : sizes[0]->inputs; }
  const hone::Ports& outputs() const { return sizes.empty() ? all_outputs : sizes[0]->outputs; }

  std::shared_ptr<const hone::LoadedModel> loaded;
  std::vector<std::unique_ptr<const Sized>> sizes;
  std::shared_ptr<const hone::CudaExecutable> gpu;
  // With the sizes that are open.
  hone::Ports all_inputs;
  hone::Ports all_outputs;
};

struct hone_outputs {
  hone_outputs(std::vector<hone::Tensor> made, std::span<const hone::image::Port> described)
      : tensors(std::move(made)), ports(described) {}

  std::vector<hone::Tensor> tensors;
  hone::Ports ports;
};

int32_t hone_api_version(void) { return HONE_API_VERSION; }

hone_code hone_load(const char* path, const hone_load_options* options, hone_model** model,
                    hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (path == nullptr || model == nullptr)
      return hone::usage_error("the path or the model is null");
    *model = nullptr;
    const hone::HonecOptions wanted = HONE_TRY(hone::options_of(options));
    const hone::HonecFile file = HONE_TRY(hone::HonecFile::open(path));
    HONE_TRY(hone::check_devices_in(file, options));
    if (options != nullptr && options->verify != 0) HONE_TRY(file.verify());
    auto loaded = HONE_TRY(hone::LoadedModel::load(file, wanted));
    *model = std::make_unique<hone_model>(std::move(loaded)).release();
    return {};
  });
}

void hone_free(hone_model* model) { delete model; }

int64_t hone_device_count(const hone_model* model) {
  return model == nullptr ? 0 : hone::devices_in(model->loaded->file());
}

const char* hone_model_name(const hone_model* model) {
  return model == nullptr ? "" : model->loaded->file().name().c_str();
}

size_t hone_input_count(const hone_model* model) {
  return model == nullptr ? 0 : model->inputs().count();
}
size_t hone_output_count(const hone_model* model) {
  return model == nullptr ? 0 : model->outputs().count();
}

const hone_port* hone_input(const hone_model* model, size_t index) {
  return model == nullptr ? nullptr : model->inputs().at(index);
}
const hone_port* hone_output(const hone_model* model, size_t index) {
  return model == nullptr ? nullptr : model->outputs().at(index);
}

int64_t hone_find_input(const hone_model* model, const char* name) {
  return model == nullptr ? -1 : model->inputs().find(name);
}
int64_t hone_find_output(const hone_model* model, const char* name) {
  return model == nullptr ? -1 : model->outputs().find(name);
}

int64_t hone_output_donor(const hone_model* model, size_t output) {
  if (model == nullptr || output >= model->outputs().count()) return -1;
  std::span<const std::optional<uint32_t>> donors;
  if (model->gpu != nullptr) donors = model->gpu->donors();
  if (const hone_model::Sized* const sized = model->at(0)) donors = sized->executable->donors();
  const std::optional<uint32_t> donor = donors.empty() ? std::nullopt : donors[output];
  return donor ? static_cast<int64_t>(*donor) : -1;
}

namespace hone {
namespace {

// Inputs where the caller has them.
Result<std::vector<Tensor>> tensors_of(std::span<const Type> types,
                                       std::span<const void* const> buffers) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto bytes = static_cast<size_t>(types[i].static_bytes());
    if (buffers[i] == nullptr && bytes > 0) return bad_input("input {} is null", i);
    tensors.push_back(HONE_TRY(
        Tensor::shared(types[i], nullptr, {static_cast<const std::byte*>(buffers[i]), bytes})));
  }
  return tensors;
}

// Outputs that lie in no input: the caller's memory may go.
Result<std::vector<Tensor>> computed(const hone_model& model, std::span<const Tensor> inputs) {
  std::vector<Tensor> outputs = HONE_TRY(model.loaded->run(inputs));
  for (Tensor& output : outputs)
    for (const Tensor& input : inputs)
      if (output.bytes().data() == input.bytes().data())
        output = Tensor::copy_of(output.type(), output.bytes());
  return outputs;
}

Status check_counts(const Ports& inputs, size_t input_count, const Ports& outputs,
                    size_t output_count) {
  if (input_count == inputs.count() && output_count == outputs.count()) return {};
  return usage_error("{} inputs and {} outputs are given, but {} and {} are needed", input_count,
                     output_count, inputs.count(), outputs.count());
}

// A model of segments, or for several devices, whose sizes are numbers all the same.
Status run_segments(const hone_model& model, std::span<const void* const> inputs,
                    std::span<void* const> outputs) {
  HONE_TRY(check_counts(model.all_inputs, inputs.size(), model.all_outputs, outputs.size()));
  if (!model.all_inputs.is_static() || !model.all_outputs.is_static())
    return usage_error("sizes of the model are open").with_hint("hone_call takes sizes");
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.push_back(model.all_inputs.type(i));
  const std::vector<Tensor> made = HONE_TRY(computed(model, HONE_TRY(tensors_of(types, inputs))));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span<const std::byte> bytes = made[i].bytes();
    if (made[i].type() != model.all_outputs.type(i))
      return bad_input("output {} is {}", i, made[i].type().to_string());
    if (bytes.empty()) continue;
    if (outputs[i] == nullptr) return bad_input("output {} is null", i);
    std::memcpy(outputs[i], bytes.data(), bytes.size());
  }
  return {};
}

Result<Type> sized_type(const Ports& ports, size_t index, const int64_t* dims) {
  const Type type = ports.type(index);
  if (dims == nullptr) {
    if (type.is_static()) return type;
    return usage_error("input {} is {}: it needs dims", index, type.to_string());
  }
  Dims sizes;
  for (int axis = 0; axis < type.rank(); ++axis) sizes.emplace_back(dims[axis]);
  return Type::make(type.dtype(), sizes);
}

}  // namespace
}  // namespace hone

hone_code hone_call(const hone_model* model, const void* const* inputs, const int64_t* const* dims,
                    size_t input_count, hone_outputs** outputs, hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (model == nullptr || outputs == nullptr || (inputs == nullptr && input_count > 0))
      return hone::usage_error("the model, the inputs or the outputs are null");
    *outputs = nullptr;
    HONE_TRY(hone::check_counts(model->inputs(), input_count, model->outputs(),
                                model->outputs().count()));
    std::vector<hone::Type> types;
    for (size_t i = 0; i < input_count; ++i)
      types.push_back(HONE_TRY(
          hone::sized_type(model->inputs(), i, dims == nullptr ? nullptr : dims[i])));
    std::vector<hone::Tensor> made = HONE_TRY(
        hone::computed(*model, HONE_TRY(hone::tensors_of(types, {inputs, input_count}))));
    std::vector<hone::image::Port> ports;
    for (size_t i = 0; i < made.size(); ++i)
      ports.push_back({model->loaded->file().outputs()[i].name, made[i].type()});
    *outputs = std::make_unique<hone_outputs>(std::move(made), ports).release();
    return {};
  });
}

const hone_port* hone_outputs_port(const hone_outputs* outputs, size_t index) {
  return outputs == nullptr ? nullptr : outputs->ports.at(index);
}
const void* hone_outputs_data(const hone_outputs* outputs, size_t index) {
  if (outputs == nullptr || index >= outputs->tensors.size()) return nullptr;
  return outputs->tensors[index].bytes().data();
}
void hone_outputs_free(hone_outputs* outputs) { delete outputs; }

hone_code hone_run(const hone_model* model, const void* const* inputs, size_t input_count,
                   void* const* outputs, size_t output_count, hone_error** error) {
  if (model == nullptr || !model->sizes.empty())
    return hone_run_sized(model, 0, inputs, input_count, outputs, output_count, error);
  return hone::guarded(error, [&]() -> hone::Status {
    if ((inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0))
      return hone::usage_error("the inputs or outputs are null");
    return hone::run_segments(*model, {inputs, input_count}, {outputs, output_count});
  });
}

hone_code hone_run_on_gpu(const hone_model* model, const uint64_t* inputs, size_t input_count,
                          const uint64_t* outputs, size_t output_count, void* stream,
                          hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (model == nullptr || (inputs == nullptr && input_count > 0) ||
        (outputs == nullptr && output_count > 0))
      return hone::usage_error("the model, the inputs or the outputs are null");
    if (model->gpu == nullptr)
      return hone::usage_error("the model is not one graph on a GPU")
          .with_hint("hone_run takes arrays in memory of this machine");
    HONE_TRY(hone::check_counts(model->all_inputs, input_count, model->all_outputs, output_count));
    const std::span<const uint64_t> from(inputs, input_count), to(outputs, output_count);
    return model->gpu->run_on_device(from, to, static_cast<hone::cuda::Stream>(stream));
  });
}

size_t hone_size_count(const hone_model* model) {
  return model == nullptr ? 0 : model->sizes.size();
}

const hone_port* hone_sized_input(const hone_model* model, size_t sizes, size_t index) {
  const hone_model::Sized* const sized = model == nullptr ? nullptr : model->at(sizes);
  return sized == nullptr ? nullptr : sized->inputs.at(index);
}
const hone_port* hone_sized_output(const hone_model* model, size_t sizes, size_t index) {
  const hone_model::Sized* const sized = model == nullptr ? nullptr : model->at(sizes);
  return sized == nullptr ? nullptr : sized->outputs.at(index);
}

hone_code hone_run_sized(const hone_model* model, size_t sizes, const void* const* inputs,
                         size_t input_count, void* const* outputs, size_t output_count,
                         hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (model == nullptr || (inputs == nullptr && input_count > 0) ||
        (outputs == nullptr && output_count > 0))
      return hone::usage_error("the model, the inputs or the outputs are null");
    const hone_model::Sized* const sized = model->at(sizes);
    if (sized == nullptr) return hone::usage_error("sizes {} of {}", sizes, model->sizes.size());
    HONE_TRY(hone::check_counts(sized->inputs, input_count, sized->outputs, output_count));
    return sized->executable->run({inputs, input_count}, {outputs, output_count});
  });
}

hone_code hone_error_code(const hone_error* error) {
  return error == nullptr ? HONE_OK : error->code;
}
const char* hone_error_text(const hone_error* error) {
  return error == nullptr ? "" : error->text.c_str();
}
const char* hone_error_hint(const hone_error* error) {
  return error == nullptr ? "" : error->hint.c_str();
}
void hone_error_free(hone_error* error) { delete error; }
