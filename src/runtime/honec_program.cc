#include "runtime/honec_program.h"

#include <algorithm>
#include <utility>

#include "base/team.h"
#include "base/text.h"
#include "runtime/cuda/gpu_image.h"
#include "runtime/cuda/gpu_map.h"
#include "runtime/honec_layout.h"
#include "target/target.h"
#include "transport/transport.h"

namespace hone::honec {

namespace {

using image::Block;
using image::Place;

constexpr int64_t kNumber = Cursor::kNumber;
constexpr int64_t kLeastPlace = 5 * kNumber;
constexpr int64_t kLeastCommand = 2 * kNumber;
constexpr size_t kMaxSizeText = size_t{1} << 16;

Result<Place> read_place(Cursor& in) {
  constexpr auto kLast = static_cast<int64_t>(Place::Region::arena);
  Place place;
  place.region = static_cast<Place::Region>(HONE_TRY(in.number("a region", 0, kLast)));
  place.index = HONE_TRY(in.index("a place"));
  place.offset = HONE_TRY(in.number());
  place.bytes = HONE_TRY(in.number());
  const int64_t steps = HONE_TRY(in.count("steps", 2 * kNumber));
  for (int64_t i = 0; i < steps; ++i) {
    const uint32_t loop = HONE_TRY(in.index("a loop"));
    place.steps.push_back({loop, HONE_TRY(in.number())});
  }
  return place;
}

// Commands, which may hold commands.
class CommandReader {
 public:
  explicit CommandReader(Cursor& in) : in_(in) {}

  Result<Block> block() {
    if (depth_ == kMaxDepth) return in_.at(fmt::format("commands {} deep", kMaxDepth));
    ++depth_;
    Block block;
    const int64_t count = HONE_TRY(in_.count("commands", kLeastCommand));
    for (int64_t i = 0; i < count; ++i) {
      std::string name = HONE_TRY(in_.text("the name of a command"));
      block.push_back({std::move(name), HONE_TRY(kind())});
    }
    --depth_;
    return block;
  }
  uint32_t collectives() const { return collectives_; }

 private:
  using Kind = decltype(image::Command::kind);

  Result<Kind> kind() {
    // The order of the alternatives is that of the format.
    constexpr auto kLast = static_cast<int64_t>(std::variant_size_v<Kind> - 1);
    switch (HONE_TRY(in_.number("the kind of a command", 0, kLast))) {
      case 0: return Kind(HONE_TRY(launch()));
      case 1: {
        Place from = HONE_TRY(read_place(in_));
        return Kind(image::Copy{std::move(from), HONE_TRY(read_place(in_))});
      }
      case 2: {
        image::Branch branch;
        branch.condition = HONE_TRY(read_place(in_));
        branch.on_true = HONE_TRY(block());
        branch.on_false = HONE_TRY(block());
        return Kind(std::move(branch));
      }
      case 3: {
        image::While loop;
        loop.test = HONE_TRY(block());
        loop.condition = HONE_TRY(read_place(in_));
        loop.body = HONE_TRY(block());
        return Kind(std::move(loop));
      }
      case 5: return Kind(HONE_TRY(start()));
      case 6: return Kind(image::Wait{HONE_TRY(in_.index("a collective"))});
      case 7: return Kind(image::DeviceIndex{HONE_TRY(read_place(in_))});
      case 8: {
        const Message message = HONE_TRY(this->message());
        const Place from = HONE_TRY(read_place(in_));
        return Kind(image::Send{collectives_++, message, from,
                                HONE_TRY(in_.text("the name of a value"))});
      }
      case 9: {
        const Message message = HONE_TRY(this->message());
        const Place to = HONE_TRY(read_place(in_));
        return Kind(image::Receive{collectives_++, message, to,
                                   HONE_TRY(in_.text("the name of a value"))});
      }
      default: {
        image::Repeat repeat;
        repeat.loop = HONE_TRY(in_.index("a loop"));
        repeat.trips = HONE_TRY(in_.number());
        repeat.reverse = HONE_TRY(in_.truth("the direction of a loop"));
        repeat.body = HONE_TRY(block());
        return Kind(std::move(repeat));
      }
    }
  }

  Result<image::Launch> launch() {
    image::Launch launch;
    launch.kernel = HONE_TRY(in_.index("a kernel"));
    const int64_t buffers = HONE_TRY(in_.count("buffers", kLeastPlace));
    for (int64_t i = 0; i < buffers; ++i) launch.buffers.push_back(HONE_TRY(read_place(in_)));
    const int64_t symbols = HONE_TRY(in_.count("symbols", kNumber));
    for (int64_t i = 0; i < symbols; ++i) launch.symbols.push_back(HONE_TRY(in_.number()));
    return launch;
  }

  // They are numbered as they come.
  Result<image::Start> start() {
    image::Start start;
    start.number = collectives_++;
    SpmdCollective& spmd = start.collective;
    spmd.kind = HONE_TRY(word("a collective", collective_kind_from_name));
    spmd.combine = HONE_TRY(word("how elements are combined", combine_from_name));
    spmd.group_size = HONE_TRY(device("the size of a group"));
    const int64_t devices = HONE_TRY(in_.count("devices", kNumber));
    for (int64_t i = 0; i < devices; ++i) spmd.groups.push_back(HONE_TRY(device("a device")));
    const int64_t pairs = HONE_TRY(in_.count("pairs", 2 * kNumber));
    for (int64_t i = 0; i < pairs; ++i) {
      const int32_t source = HONE_TRY(device("a device"));
      spmd.pairs.emplace_back(source, HONE_TRY(device("a device")));
    }
    Result<CollectiveSchedule> schedule = parse_collective_schedule(
        HONE_TRY(in_.text("a schedule")));
    if (!schedule.ok()) return in_.at(schedule.error().what());
    spmd.schedule = *schedule;
    start.dtype = HONE_TRY(word("an element type", dtype_from_name));
    start.from = HONE_TRY(read_place(in_));
    start.to = HONE_TRY(read_place(in_));
    start.result = HONE_TRY(in_.text("the name of a value"));
    return start;
  }

  Result<Message> message() {
    Message message;
    message.peer = HONE_TRY(device("a device"));
    message.tag = static_cast<uint32_t>(HONE_TRY(in_.number("a tag", 0, Message::kMaxTag)));
    return message;
  }

  Result<int32_t> device(std::string_view what) {
    return static_cast<int32_t>(HONE_TRY(in_.number(what, 0, Transport::kMaxDevices)));
  }
  template <class FromName>
  auto word(std::string_view what, const FromName& from_name)
      -> Result<typename decltype(from_name(std::string_view()))::value_type> {
    const std::string text = HONE_TRY(in_.text(what));
    if (const auto known = from_name(text)) return *known;
    return in_.at(fmt::format("'{}' is not {}", excerpt(text), what));
  }

  Cursor& in_;
  int depth_ = 0;
  uint32_t collectives_ = 0;
};

Result<image::Kernel> read_kernel(Cursor& in, const ProgramParts& parts,
                                  const Instructions& needs) {
  image::Kernel kernel;
  kernel.needs = needs;
  kernel.name = HONE_TRY(in.text("the name of a kernel"));
  kernel.object = parts.object(static_cast<size_t>(
      HONE_TRY(in.number("an object", 0, parts.objects - 1))));
  kernel.scratch_bytes = HONE_TRY(in.number());
  const int64_t phases = HONE_TRY(in.count("phases", 3 * kNumber));
  for (int64_t i = 0; i < phases; ++i) {
    image::Phase phase;
    phase.symbol = HONE_TRY(in.text("the name of a function"));
    phase.trips = HONE_TRY(in.number());
    phase.is_parallel = HONE_TRY(in.truth("whether a phase is parallel"));
    kernel.phases.push_back(std::move(phase));
  }
  return kernel;
}

Result<GpuMap> read_map(Cursor& in) {
  GpuMap map;
  map.buffer = HONE_TRY(in.number("the buffer of a map", 0, INT32_MAX));
  const std::string type = HONE_TRY(in.text("an element type"));
  const std::optional<DType> dtype = dtype_from_name(type);
  if (!dtype) return in.at(fmt::format("there is no element type '{}'", excerpt(type)));
  map.dtype = *dtype;
  const int64_t rank = HONE_TRY(in.count("dims of a map", 2 * kNumber));
  for (int64_t i = 0; i < rank; ++i) {
    map.dims.push_back(HONE_TRY(in.number()));
    map.box.push_back(HONE_TRY(in.number()));
  }
  if (const Status good = check_map(map, INT32_MAX); !good.ok()) return in.at(good.error().what());
  return map;
}

// How a GPU launches a kernel that was read, whose object turns out to be PTX. Without phases, it
// runs on the CPU, and its object is machine code.
Result<GpuKernel> read_gpu_kernel(Cursor& in, image::Kernel& kernel, const Head& head,
                                  ProgramFor device) {
  GpuKernel gpu;
  gpu.capability = HONE_TRY(in.number("the capability of a kernel", 0, head.capability));
  if (gpu.capability == 0) return gpu;
  const auto wrong = [&](const Status& what) {
    return in.at(fmt::format("kernel '{}': {}", excerpt(kernel.name), what.error().what()));
  };
  gpu.alignment = HONE_TRY(in.number());
  for (const image::Phase& phase : kernel.phases) {
    GpuPhase& made = gpu.phases.emplace_back();
    made.symbol = phase.symbol;
    made.trip_of = HONE_TRY(in.truth("who takes a trip")) ? TripOf::block : TripOf::thread;
    for (int64_t* number : {&made.block_threads, &made.shared_bytes, &made.scratch_bytes})
      *number = HONE_TRY(in.number());
    if (const Status good = check_block(made, kMaxGpuShared); !good.ok()) return wrong(good);
  }
  if (device == ProgramFor::exact_gpu) {
    gpu.is_exact = HONE_TRY(in.truth("whether one GPU alone runs a kernel"));
    for (GpuPhase& phase : gpu.phases) {
      const int64_t maps = HONE_TRY(in.count("maps", 3 * kNumber));
      for (int64_t i = 0; i < maps; ++i) phase.maps.push_back(HONE_TRY(read_map(in)));
    }
  }
  gpu.ptx = *std::exchange(kernel.object, nullptr);
  if (const Status good = check_code(gpu); !good.ok()) return wrong(good);
  return gpu;
}

// A number, or of a program that has symbols a text.
Result<Dim> read_size(Cursor& in, std::string_view what, const Symbols& symbols) {
  if (symbols.empty()) return Dim(HONE_TRY(in.number(what, 0, INT64_MAX)));
  const std::string text = HONE_TRY(in.text(what));
  if (text.size() > kMaxSizeText) return in.at(fmt::format("{} is too long", what));
  Result<Dim> size = parse_dim(text, symbols);
  if (size.ok()) return size;
  return in.at(fmt::format("{} is '{}': {}", what, excerpt(text), size.error().what()));
}

Result<std::vector<Dim>> read_sizes(Cursor& in, std::string_view what, const Symbols& symbols) {
  std::vector<Dim> sizes;
  const int64_t count = HONE_TRY(in.count(what, kNumber));
  for (int64_t i = 0; i < count; ++i) sizes.push_back(HONE_TRY(read_size(in, what, symbols)));
  return sizes;
}

Result<Symbol> read_symbol(Cursor& in) {
  const std::string name = HONE_TRY(in.text("the name of a size"));
  const int64_t min = HONE_TRY(in.number("the least of a size", 0, kDimLimit));
  const int64_t max = HONE_TRY(in.number("the largest of a size", min, kDimLimit));
  const int64_t multiple = HONE_TRY(in.number("the divisor of a size", 1, kDimLimit));
  if (!is_symbol_name(name) || max / multiple * multiple < min)
    return in.at(fmt::format("there is no size '{}'", excerpt(name)));
  return Symbol::get(name, min, max, multiple);
}

}  // namespace

Result<Symbols> read_symbols(Cursor& in) {
  Symbols symbols;
  const int64_t count = HONE_TRY(in.count("sizes", 4 * kNumber));
  for (int64_t i = 0; i < count; ++i) {
    const Symbol symbol = HONE_TRY(read_symbol(in));
    // Sizes are bound by their names.
    if (std::ranges::find(symbols, symbol.name(), &Symbol::name) != symbols.end())
      return in.at(fmt::format("the size '{}' is listed twice", symbol.name()));
    symbols.push_back(symbol);
  }
  return symbols;
}

Result<Type> read_type(Cursor& in, const Symbols& symbols) {
  const std::string text = HONE_TRY(in.text("an element type"));
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype) return in.at(fmt::format("there is no element type '{}'", excerpt(text)));
  const int64_t rank = HONE_TRY(in.number("a rank", 0, kMaxRank));
  Dims dims;
  while (static_cast<int64_t>(dims.size()) < rank) {
    dims.push_back(HONE_TRY(read_size(in, "a dim", symbols)));
  }
  return Type::make(*dtype, dims);
}

Result<Head> read_head(Cursor& in, ProgramFor device) {
  Head head;
  if (device != ProgramFor::cpu)
    head.capability =
        HONE_TRY(in.number("the capability of a GPU", kMinCapability, kMaxCapability));
  head.unit = HONE_TRY(in.index("a unit"));
  const std::string isa = HONE_TRY(in.text("the instructions"));
  const std::optional<Isa> level = isa_from_name(isa);
  if (!level) return in.at(fmt::format("there are no instructions '{}'", excerpt(isa)));
  head.needs.isa = *level;
  const int64_t extensions = HONE_TRY(in.count("extensions", kNumber));
  for (int64_t i = 0; i < extensions; ++i) {
    const std::string text = HONE_TRY(in.text("an extension"));
    const std::optional<Extension> extension = extension_from_name(text);
    if (!extension) return in.at(fmt::format("there are no instructions '{}'", excerpt(text)));
    head.needs.extensions.insert(*extension);
  }
  head.threads = HONE_TRY(in.number("the threads", 1, Team::kMaxThreads));
  head.plan = HONE_TRY(in.text("the plan"));
  head.prices = HONE_TRY(in.text("the prices"));
  head.flushes_denormals = HONE_TRY(in.truth("whether denormals are 0"));
  head.symbols = HONE_TRY(read_symbols(in));
  if (device != ProgramFor::cpu && !head.symbols.empty())
    return in.at("code for a GPU is for sizes that are numbers");
  for (std::vector<Type>* types : {&head.inputs, &head.outputs}) {
    const int64_t count = HONE_TRY(in.count("types", 2 * kNumber));
    for (int64_t i = 0; i < count; ++i) types->push_back(HONE_TRY(read_type(in, head.symbols)));
  }
  head.arena = HONE_TRY(read_sizes(in, "the arena", head.symbols));
  return head;
}

Status read_program(Cursor& in, const ProgramParts& parts, ProgramFor device,
                    ProgramContent& content) {
  const Head head = HONE_TRY(read_head(in, device));
  OpenImage& open = content.open;
  Image& image = open.image;
  image.threads = head.threads;
  image.flushes_denormals = head.flushes_denormals;
  open.arena = head.arena;
  open.numbers = HONE_TRY(read_sizes(in, "a number", head.symbols));
  const int64_t donations = HONE_TRY(in.count("donations", 2 * kNumber));
  for (int64_t i = 0; i < donations; ++i) {
    const uint32_t input = HONE_TRY(in.index("an input"));
    image.donations.push_back({input, HONE_TRY(in.index("an output"))});
  }
  const int64_t constants = HONE_TRY(in.count("constants", 3 * kNumber));
  for (int64_t i = 0; i < constants; ++i) {
    const uint32_t index = HONE_TRY(in.index("a weight"));
    image.constants.push_back(HONE_TRY(parts.weight(index, HONE_TRY(read_type(in)))));
  }
  const int64_t kernels = HONE_TRY(in.count("kernels", 4 * kNumber));
  for (int64_t i = 0; i < kernels; ++i) {
    image.kernels.push_back(HONE_TRY(read_kernel(in, parts, head.needs)));
    if (device != ProgramFor::cpu)
      content.gpu.push_back(HONE_TRY(read_gpu_kernel(in, image.kernels.back(), head, device)));
  }
  CommandReader commands(in);
  // A loop has a command that names it.
  image.loops = static_cast<uint32_t>(HONE_TRY(in.count("loops", kNumber)));
  image.commands = HONE_TRY(commands.block());
  image.collectives = commands.collectives();
  if (head.symbols.empty())
    for (Dim bytes : open.arena) image.arena_bytes = std::max(image.arena_bytes, bytes.value());
  return in.end();
}

}  // namespace hone::honec
