#include "runtime/hone.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/team.h"
#include "runtime/honec.h"

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

// What a hone_port points to.
class Ports {
 public:
  explicit Ports(std::span<const image::Port> ports) : ports_(ports.begin(), ports.end()) {
    for (const image::Port& port : ports_) dims_.push_back(port.type.static_dims());
    for (size_t i = 0; i < ports_.size(); ++i) {
      const Type type = ports_[i].type;
      views_.push_back({.name = ports_[i].name.c_str(),
                        .type_name = name(type.dtype()).data(),
                        .type = number_of(type.dtype()),
                        .rank = type.rank(),
                        .dims = dims_[i].data(),
                        .bytes = static_cast<size_t>(type.static_bytes())});
    }
  }
  Ports(const Ports&) = delete;

  size_t count() const { return views_.size(); }
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

Result<HonecOptions> options_of(const hone_load_options* given) {
  HonecOptions options;
  if (given == nullptr) return options;
  if (given->struct_size < kFirstOptions)
    return usage_error("options of {} bytes, {} are the least", given->struct_size, kFirstOptions);
  if (given->threads < 0 || given->threads > Team::kMaxThreads)
    return usage_error("{} threads", given->threads);
  if (given->memory_limit < 0) return usage_error("a limit of {} bytes", given->memory_limit);
  if (given->threads > 0) options.threads = given->threads;
  if (given->memory_limit > 0) options.memory_limit = given->memory_limit;
  return options;
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

  const Sized* at(size_t index) const {
    return index < sizes.size() ? sizes[index].get() : nullptr;
  }
  const Sized& first() const { return *sizes[0]; }

  std::string name;
  std::vector<std::unique_ptr<const Sized>> sizes;
};

int32_t hone_api_version(void) { return HONE_API_VERSION; }

hone_code hone_load(const char* path, const hone_load_options* options, hone_model** model,
                    hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (path == nullptr || model == nullptr) return hone::usage_error("a null path or model");
    *model = nullptr;
    const hone::HonecOptions wanted = HONE_TRY(hone::options_of(options));
    const hone::HonecFile file = HONE_TRY(hone::HonecFile::open(path));
    if (options != nullptr && options->verify != 0) HONE_TRY(file.verify());
    auto loaded = std::make_unique<hone_model>();
    loaded->name = file.name();
    auto executables = HONE_TRY(hone::load_all_sizes(file, wanted));
    for (size_t i = 0; i < executables.size(); ++i)
      loaded->sizes.push_back(std::make_unique<const hone_model::Sized>(
          file.programs()[file.sizes()[i]], std::move(executables[i])));
    *model = loaded.release();
    return {};
  });
}

void hone_free(hone_model* model) { delete model; }

const char* hone_model_name(const hone_model* model) { return model->name.c_str(); }

size_t hone_input_count(const hone_model* model) { return model->first().inputs.count(); }
size_t hone_output_count(const hone_model* model) { return model->first().outputs.count(); }

const hone_port* hone_input(const hone_model* model, size_t index) {
  return model->first().inputs.at(index);
}
const hone_port* hone_output(const hone_model* model, size_t index) {
  return model->first().outputs.at(index);
}

int64_t hone_find_input(const hone_model* model, const char* name) {
  return model->first().inputs.find(name);
}
int64_t hone_find_output(const hone_model* model, const char* name) {
  return model->first().outputs.find(name);
}

hone_code hone_run(const hone_model* model, const void* const* inputs, size_t input_count,
                   void* const* outputs, size_t output_count, hone_error** error) {
  return hone_run_sized(model, 0, inputs, input_count, outputs, output_count, error);
}

size_t hone_size_count(const hone_model* model) { return model->sizes.size(); }

const hone_port* hone_sized_input(const hone_model* model, size_t sizes, size_t index) {
  const hone_model::Sized* const sized = model->at(sizes);
  return sized == nullptr ? nullptr : sized->inputs.at(index);
}
const hone_port* hone_sized_output(const hone_model* model, size_t sizes, size_t index) {
  const hone_model::Sized* const sized = model->at(sizes);
  return sized == nullptr ? nullptr : sized->outputs.at(index);
}

hone_code hone_run_sized(const hone_model* model, size_t sizes, const void* const* inputs,
                         size_t input_count, void* const* outputs, size_t output_count,
                         hone_error** error) {
  return hone::guarded(error, [&]() -> hone::Status {
    if (model == nullptr || (inputs == nullptr && input_count > 0) ||
        (outputs == nullptr && output_count > 0))
      return hone::usage_error("a null model, or null inputs or outputs");
    const hone_model::Sized* const sized = model->at(sizes);
    if (sized == nullptr) return hone::usage_error("sizes {} of {}", sizes, model->sizes.size());
    if (input_count != sized->inputs.count() || output_count != sized->outputs.count())
      return hone::usage_error("{} inputs and {} outputs are given, {} and {} needed", input_count,
                               output_count, sized->inputs.count(), sized->outputs.count());
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
