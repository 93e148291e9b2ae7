#include "runtime/load_elsewhere.h"

#include <cstring>
#include <vector>

#include "tensor/memory_pool.h"

namespace hone {
namespace {

// Memory beside loaded code, for as long as the code is loaded. Mappings after it begin at another
// page, and memory from the heap at another line. The system has given away other pages.
class Gap {
 public:
  explicit Gap(Rng& rng) {
    const size_t pages = rng.below(kMostPages) * kPage;
    parts_.emplace_back(pages, /*zeroed=*/false);
    std::memset(parts_.back().data(), 1, pages);  // pages that nobody writes are no pages
    for (uint64_t lines = rng.below(kMostLines); lines > 0; --lines)
      parts_.emplace_back(kLine, /*zeroed=*/false);
  }

 private:
  static constexpr uint64_t kPage = 4096, kLine = 64;
  static constexpr uint64_t kMostPages = 256, kMostLines = 64;

  std::vector<AlignedBytes> parts_;
};

struct Elsewhere {
  Gap gap;
  std::shared_ptr<const Executable> executable = {};
};

}  // namespace

Result<std::shared_ptr<const Executable>> load_elsewhere(const Image& image, Rng& rng,
                                                         const LoadOptions& options,
                                                         int64_t most_copied) {
  auto elsewhere = std::make_shared<Elsewhere>(Gap(rng));
  int64_t bytes = 0;
  for (const Tensor& constant : image.constants) bytes += constant.byte_size();
  Image copy = image;
  if (bytes <= most_copied)
    for (Tensor& constant : copy.constants)
      constant = Tensor::copy_of(constant.type(), constant.bytes());
  elsewhere->executable = HONE_TRY(Executable::load(copy, options));
  const Executable* const executable = elsewhere->executable.get();
  return std::shared_ptr<const Executable>(std::move(elsewhere), executable);
}

}  // namespace hone
