#include "runtime/honec_program.h"

#include "base/team.h"
#include "runtime/honec_layout.h"

namespace hone::honec {

namespace {

using image::Block;
using image::Place;

constexpr int64_t kNumber = Cursor::kNumber;
constexpr int64_t kLeastPlace = 5 * kNumber;
constexpr int64_t kLeastCommand = 2 * kNumber;

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

  Cursor& in_;
  int depth_ = 0;
};

Result<image::Kernel> read_kernel(Cursor& in,
                                  std::span<const std::shared_ptr<const std::string>> objects,
                                  const Instructions& needs) {
  image::Kernel kernel;
  kernel.needs = needs;
  kernel.name = HONE_TRY(in.text("the name of a kernel"));
  const auto count = static_cast<int64_t>(objects.size());
  kernel.object = objects[static_cast<size_t>(HONE_TRY(in.number("an object", 0, count - 1)))];
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

}  // namespace

Result<Type> read_type(Cursor& in) {
  const std::string text = HONE_TRY(in.text("an element type"));
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype) return in.at(fmt::format("there is no element type '{}'", excerpt(text)));
  const int64_t rank = HONE_TRY(in.number("a rank", 0, kMaxRank));
  Dims dims;
  while (static_cast<int64_t>(dims.size()) < rank)
    dims.emplace_back(HONE_TRY(in.number("a dim", 0, kMaxElements)));
  return Type::make(*dtype, dims);
}

Result<Head> read_head(Cursor& in) {
  Head head;
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
  head.arena_bytes = HONE_TRY(in.number("the arena", 0, INT64_MAX));
  head.plan = HONE_TRY(in.text("the plan"));
  for (std::vector<Type>* types : {&head.inputs, &head.outputs}) {
    const int64_t count = HONE_TRY(in.count("types", 2 * kNumber));
    for (int64_t i = 0; i < count; ++i) types->push_back(HONE_TRY(read_type(in)));
  }
  return head;
}

Status read_program(Cursor& in, std::span<const std::shared_ptr<const std::string>> objects,
                    const std::function<Result<Tensor>(uint32_t, Type)>& weight, Image& image) {
  const Head head = HONE_TRY(read_head(in));
  image.threads = head.threads;
  image.arena_bytes = head.arena_bytes;
  const int64_t donations = HONE_TRY(in.count("donations", 2 * kNumber));
  for (int64_t i = 0; i < donations; ++i) {
    const uint32_t input = HONE_TRY(in.index("an input"));
    image.donations.push_back({input, HONE_TRY(in.index("an output"))});
  }
  const int64_t constants = HONE_TRY(in.count("constants", 3 * kNumber));
  for (int64_t i = 0; i < constants; ++i) {
    const uint32_t index = HONE_TRY(in.index("a weight"));
    image.constants.push_back(HONE_TRY(weight(index, HONE_TRY(read_type(in)))));
  }
  const int64_t kernels = HONE_TRY(in.count("kernels", 4 * kNumber));
  for (int64_t i = 0; i < kernels; ++i)
    image.kernels.push_back(HONE_TRY(read_kernel(in, objects, head.needs)));
  // A loop has a command that names it.
  image.loops = static_cast<uint32_t>(HONE_TRY(in.count("loops", kNumber)));
  image.commands = HONE_TRY(CommandReader(in).block());
  return in.end();
}

}  // namespace hone::honec
