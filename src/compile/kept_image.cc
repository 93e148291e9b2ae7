#include "compile/kept_image.h"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "codegen/kernels.h"
#include "compile/honec.h"
#include "ir/op_facts.h"
#include "ir/text_printer.h"
#include "kernel/packed.h"
#include "plan/planned.h"
#include "runtime/honec.h"

namespace hone {
namespace {

constexpr int64_t kLeastNamed = 1024;             // bytes of a constant; smaller ones are kept
constexpr int64_t kMostKept = int64_t{64} << 20;  // bytes of the constants of an entry
constexpr uint64_t kIsKept = 0;                   // in place of a hash

// Constants by the hash of their content.
using NamedConstants = std::map<uint64_t, Tensor>;

// Constants of the graph as they are, and as the plan's layouts pack them.
void add_constants(const Graph& graph, const Plan& plan, NamedConstants& named) {
  for (NodeId n : graph.nodes()) {
    if (!is_constant(graph.opcode(n))) continue;
    const Tensor& tensor = graph.constant(n);
    if (tensor.byte_size() < kLeastNamed) continue;
    named.try_emplace(tensor.content_hash(), tensor);
    const auto layout = plan.layout.find(std::string(graph.name(graph.result(n))));
    // Elements of less than a byte are packed at once, which takes as long as lowering.
    if (layout == plan.layout.end() || bits(tensor.dtype()) < 8) continue;
    const Tensor other = packed(tensor, layout->second);
    named.try_emplace(other.content_hash(), other);
  }
  for (const RegionRef& region : regions_of(graph))
    if (const auto found = plan.region.find(region.key); found != plan.region.end())
      add_constants(*region.graph, found->second, named);
}

NamedConstants constants_of(const Graph& graph, const Plan& plan) {
  NamedConstants named;
  add_constants(graph, plan, named);
  return named;
}

// An entry: the number of constants, a hash for each, and a compiled model without those that have
// one.
std::string joined(std::span<const uint64_t> hashes, const HonecBytes& bytes) {
  const uint64_t count = hashes.size();
  std::string all(sizeof count + hashes.size_bytes(), '\0');
  std::memcpy(all.data(), &count, sizeof count);
  if (count > 0) std::memcpy(all.data() + sizeof count, hashes.data(), hashes.size_bytes());
  return all + bytes.joined();
}

std::optional<std::vector<uint64_t>> hashes_of(std::string_view entry) {
  uint64_t count = 0;
  if (entry.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, entry.data(), sizeof count);
  if (count > (entry.size() - sizeof count) / sizeof(uint64_t)) return std::nullopt;
  std::vector<uint64_t> hashes(count);
  if (count > 0) std::memcpy(hashes.data(), entry.data() + sizeof count, count * sizeof(uint64_t));
  return hashes;
}

Result<Image> image_behind(size_t offset, std::string entry) {
  const auto owner = std::make_shared<const std::string>(std::move(entry));
  const auto bytes = std::as_bytes(std::span(*owner)).subspan(offset);
  const HonecFile file = HONE_TRY(HonecFile::parse(owner, bytes));
  return file.image(0);
}

}  // namespace

KeptImage::KeptImage(const Graph& graph, const Plan& plan, const Target& target,
                     bool flushes_denormals, CompileCache& cache)
    : graph_(graph), plan_(plan), cache_(cache), key_("code ") {
  append_label(key_, '@', graph.name());
  key_ += fmt::format(" {}\nimage {} {}{}\ngraph {:016x} {:016x}\n", name(target.isa),
                      HONE_KEPT_IMAGE_VERSION, code_version(),
                      flushes_denormals ? " without denormals" : "", structural_hash(graph),
                      hash_string(hone::print(graph, {.elide = true})));
  key_ += print(target) + print(plan);
}

std::optional<Image> KeptImage::find() const {
  std::optional<std::string> entry = cache_.find(key_);
  if (!entry) return std::nullopt;
  const std::optional<std::vector<uint64_t>> hashes = hashes_of(*entry);
  if (!hashes) return std::nullopt;
  Result<Image> image = image_behind((1 + hashes->size()) * sizeof(uint64_t), *std::move(entry));
  if (!image.ok() || image->constants.size() != hashes->size()) return std::nullopt;
  const NamedConstants named = constants_of(graph_, plan_);
  for (size_t i = 0; i < hashes->size(); ++i) {
    if ((*hashes)[i] == kIsKept) continue;
    const auto found = named.find((*hashes)[i]);
    if (found == named.end()) return std::nullopt;
    image->constants[i] = found->second;
  }
  return std::move(*image);
}

void KeptImage::put(const Image& image) const {
  const NamedConstants named = constants_of(graph_, plan_);
  Image kept = image;
  std::vector<uint64_t> hashes;
  int64_t bytes = 0;
  for (Tensor& constant : kept.constants) {
    const auto found = named.find(constant.content_hash());
    const bool is_named =
        found != named.end() && found->second.type() == constant.type() && found->first != kIsKept;
    hashes.push_back(is_named ? found->first : kIsKept);
    if (is_named) constant = Tensor::zeros(Type::get(DType::u8, {0}));
    bytes += constant.byte_size();
  }
  if (bytes > kMostKept) return;
  const HonecProgram program = {.image = &kept};
  if (const Result<HonecBytes> made = honec_bytes({&program, 1}, "cache"); made.ok())
    (void)cache_.put(key_, joined(hashes, *made)).ok();
}

}  // namespace hone
