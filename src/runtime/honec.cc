#include "runtime/honec.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/honec_cursor.h"
#include "runtime/honec_layout.h"
#include "runtime/honec_program.h"

namespace hone {

bool is_honec_path(const std::filesystem::path& path) { return path.extension() == ".honec"; }

bool begins_like_honec(std::string_view bytes) {
  return bytes.starts_with(std::string_view(honec::kMagic, sizeof honec::kMagic));
}

// ---- Opening -----------------------------------------------------------------------------------

Result<HonecFile> HonecFile::open(const std::filesystem::path& path) {
  auto mapped = std::make_shared<const MappedFile>(HONE_TRY(MappedFile::open(path)));
  HonecFile file;
  file.path_ = path.string();
  file.bytes_ = mapped->bytes();
  file.owner_ = std::move(mapped);
  Status good = file.read();
  if (!good.ok()) return file.placed(std::move(good).error());
  return file;
}

Result<HonecFile> HonecFile::parse(std::shared_ptr<const void> owner,
                                   std::span<const std::byte> bytes) {
  HonecFile file;
  file.bytes_ = bytes;
  file.owner_ = std::move(owner);
  HONE_TRY(file.read());
  return file;
}

Error HonecFile::placed(Error error) const {
  return path_.empty() ? error : std::move(error).within(path_);
}

// ---- What is in it -----------------------------------------------------------------------------

Result<size_t> HonecFile::choose(const Instructions& machine, size_t sizes) const {
  HONE_CHECK(sizes < sizes_.size(), "sizes {} of {}", sizes, sizes_.size());
  Status has;
  int64_t least = 0;  // capability
  for (size_t i = 0; i < programs_.size(); ++i) {
    if (programs_[i].sizes != sizes) continue;
    least = programs_[i].capability;
    if (least != 0) continue;
    has = check_has(machine, programs_[i].needs, "the compiled code");
    if (has.ok()) return i;
  }
  if (has.ok())
    return placed(unsupported("the compiled code is for NVIDIA GPUs, sm_{} or later", least)
                      .with_hint("--device cuda runs it where there is one; 'hone compile MODEL -o "
                                 "FILE.honec' makes code for this machine's CPU"));
  return placed(std::move(has).error().with_hint(fmt::format(
      "'hone compile MODEL --isa {} -o FILE.honec' makes code for it", hone::name(machine.isa))));
}

Result<size_t> HonecFile::choose_for_gpu(int64_t capability, const Instructions& machine,
                                         size_t sizes) const {
  HONE_CHECK(sizes < sizes_.size(), "sizes {} of {}", sizes, sizes_.size());
  Status has;
  int64_t least = 0;
  bool is_exact = false;
  for (size_t i = 0; i < programs_.size(); ++i) {
    if (programs_[i].sizes != sizes || programs_[i].capability == 0) continue;
    least = programs_[i].capability;
    is_exact = programs_[i].is_exact;
    if (least > capability || (is_exact && least != capability)) continue;
    has = check_has(machine, programs_[i].needs, "code of the CPU beside the GPU");
    if (has.ok()) return i;
  }
  if (!has.ok()) return placed(std::move(has).error());
  const std::string_view way_out =
      "'hone compile MODEL --target sm_80 -o FILE.honec' makes code for all GPUs that hone runs on";
  if (least == 0)
    return placed(unsupported("the compiled code is for CPUs")
                      .with_hint(fmt::format("{}; {}", kCpuRunsIt, way_out)));
  return placed(unsupported("the compiled code is for GPUs of sm_{} {}, and this one is sm_{}",
                            least, is_exact ? "alone" : "and later", capability)
                    .with_hint(std::string(way_out)));
}

bool HonecFile::is_for_gpus() const {
  return std::ranges::all_of(programs_, [](const Program& one) { return one.capability != 0; });
}

Result<Image> HonecFile::image(size_t program, const Bindings& sizes) const {
  OpenImage open = HONE_TRY(open_image(program));
  if (!programs_[program].is_open) return std::move(open.image);
  Result<Image> image = bound_image(open, sizes);
  return image.ok() ? std::move(image) : placed(std::move(image).error());
}

Result<OpenImage> HonecFile::open_image(size_t program) const {
  honec::ProgramContent content = HONE_TRY(this->content(program));
  return std::move(content.open);
}

Result<GpuImage> HonecFile::gpu_image(size_t program) const {
  honec::ProgramContent content = HONE_TRY(this->content(program));
  HONE_CHECK(programs_[program].capability != 0, "program {} is for a CPU", program);
  return GpuImage{std::move(content.open.image), std::move(content.gpu)};
}

std::string_view HonecFile::object(uint32_t number) const {
  HONE_CHECK(number < objects_.size(), "object {} of {}", number, objects_.size());
  return {reinterpret_cast<const char*>(code_.data()) + objects_[number].offset,
          static_cast<size_t>(objects_[number].bytes)};
}

Result<honec::ProgramContent> HonecFile::content(size_t program) const {
  HONE_CHECK(program < programs_.size(), "program {} of {}", program, programs_.size());
  honec::ProgramContent content;
  OpenImage& open = content.open;
  open.image.name = segments_ ? segments_->units[programs_[program].unit] : name_;
  open.image.inputs = programs_[program].inputs;
  open.image.outputs = programs_[program].outputs;
  std::vector<std::shared_ptr<const std::string>> objects(objects_.size());
  const auto shared = [&](size_t i) {
    if (objects[i] == nullptr)
      objects[i] = std::make_shared<const std::string>(object(static_cast<uint32_t>(i)));
    return objects[i];
  };
  const auto weight = [&](uint32_t i, Type type) { return this->weight(i, type); };
  honec::Cursor in(program_bytes_[program], "program");
  const auto device = programs_[program].capability == 0 ? honec::ProgramFor::cpu
                      : programs_[program].is_exact      ? honec::ProgramFor::exact_gpu
                                                         : honec::ProgramFor::gpu;
  Status good = honec::read_program(in, {static_cast<int64_t>(objects_.size()), shared, weight},
                                    device, content);
  if (!good.ok()) return placed(std::move(good).error());
  return content;
}

Result<Tensor> HonecFile::weight(uint32_t number, Type type) const {
  if (number >= tensors_.size()) return bad_input("weight {} of {}", number, tensors_.size());
  const Piece& piece = tensors_[number];
  return Tensor::shared(
      type, owner_,
      weights_.subspan(static_cast<size_t>(piece.offset), static_cast<size_t>(piece.bytes)));
}

Result<std::vector<Tensor>> HonecFile::mesh_constants() const {
  std::vector<Tensor> made;
  const size_t own = mesh_ ? mesh_->inputs.size() - mesh_constants_.size() : 0;
  for (size_t i = 0; i < mesh_constants_.size(); ++i)
    made.push_back(HONE_TRY(weight(mesh_constants_[i], mesh_->inputs[own + i].whole.type)));
  return made;
}

// ---- Loading -----------------------------------------------------------------------------------

int64_t threads_of(int64_t planned, const HonecOptions& options) {
  const int64_t most =
      options.threads.value_or(std::max<int64_t>(1, std::thread::hardware_concurrency()));
  return std::clamp<int64_t>(planned, 1, std::max<int64_t>(1, most));
}

Result<std::shared_ptr<const Executable>> load_honec(const HonecFile& file,
                                                     const HonecOptions& options) {
  const Instructions machine = options.machine ? *options.machine : HONE_TRY(host_instructions());
  const size_t program = HONE_TRY(file.choose(machine, options.sizes));
  Image image = HONE_TRY(file.image(program));
  image.threads = threads_of(image.threads, options);
  Result<std::shared_ptr<const Executable>> loaded = Executable::load(
      image, {.team = options.team, .machine = machine, .memory_limit = options.memory_limit});
  if (loaded.ok() || file.path().empty()) return loaded;
  return std::move(loaded).error().within(file.path());
}

namespace {

// The file's machine code for the device before that of the store.
CubinStore store_of(const HonecFile& file, const CudaDevice& device, CubinStore otherwise) {
  std::map<std::string, std::string_view, std::less<>> own;
  for (const HonecCubin& one : file.cubins())
    if (one.capability == device.capability() && one.maker <= device.driver().version())
      own.emplace(cubin_key(device, file.object(one.object)), one.bytes);
  if (own.empty()) return otherwise;
  return {.find = [own = std::move(own), find = std::move(otherwise.find)](
                      std::string_view key) -> std::optional<std::string> {
            if (const auto found = own.find(key); found != own.end())
              return std::string(found->second);
            return find ? find(key) : std::nullopt;
          },
          .put = std::move(otherwise.put)};
}

}  // namespace

Result<std::shared_ptr<const CudaExecutable>> load_honec_on_gpu(const HonecFile& file,
                                                                const HonecOptions& options) {
  const Instructions machine = options.machine ? *options.machine : HONE_TRY(host_instructions());
  const size_t program =
      HONE_TRY(file.choose_for_gpu(options.device->capability(), machine, options.sizes));
  GpuImage image = HONE_TRY(file.gpu_image(program));
  image.image.threads = threads_of(image.image.threads, options);
  Result<std::shared_ptr<const CudaExecutable>> loaded = CudaExecutable::load(
      image, options.device,
      {.cubins = store_of(file, *options.device, options.cubins), .team = options.team});
  if (loaded.ok() || file.path().empty()) return loaded;
  return std::move(loaded).error().within(file.path());
}

}  // namespace hone
