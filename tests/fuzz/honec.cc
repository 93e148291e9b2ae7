#include "runtime/honec.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/honec_layout.h"
#include "runtime/segment_run.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The smallest of all sizes, so that images for all sizes are reached.
Bindings smallest(const OpenImage& open) {
  Bindings sizes;
  for (Symbol symbol : symbols_of(open)) {
    const int64_t step = symbol.multiple_of(), steps = symbol.min() / step;
    sizes.emplace(symbol.name(), (symbol.min() % step == 0 ? steps : steps + 1) * step);
  }
  return sizes;
}

std::optional<std::vector<Tensor>> zeros(std::span<const image::Port> ports) {
  constexpr int64_t kMost = 1 << 12;
  std::vector<Tensor> tensors;
  for (const image::Port& port : ports) {
    if (!port.type.is_static() || port.type.static_bytes() > kMost) return std::nullopt;
    tensors.push_back(Tensor::zeros(port.type));
  }
  return tensors;
}

// Segments run on units that give zeros.
void run(const HonecFile& file) {
  const std::optional<std::vector<Tensor>> inputs = zeros(file.inputs());
  if (file.segments() == nullptr || !inputs) return;
  const auto unit = [&](uint32_t which, std::span<const Tensor>,
                        const SegmentLimits&) -> Result<std::vector<Tensor>> {
    for (const HonecFile::Program& program : file.programs())
      if (program.unit == which)
        if (std::optional<std::vector<Tensor>> outputs = zeros(program.outputs))
          return *std::move(outputs);
    return bad_input("no zeros");
  };
  (void)run_segments(*file.segments(), *inputs, unit, {.max_trips = 16});
}

// Opening, looking and checking never crash. Nothing of the code is run.
void look(std::span<const std::byte> bytes) {
  const Result<HonecFile> file = HonecFile::parse(nullptr, bytes);
  if (!file.ok()) return;
  (void)file->verify();
  for (size_t i = 0; i < file->programs().size(); ++i)
    if (const Result<OpenImage> open = file->open_image(i); open.ok())
      if (const Result<Image> image = file->image(i, smallest(*open)); image.ok())
        (void)check_image(*image);
  run(*file);
}

// Checksums and size as they should be, so that what stands behind them is reached.
void seal(std::vector<std::byte>& bytes) {
  honec::Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.file_bytes = bytes.size();
  const size_t room = (bytes.size() - sizeof header) / sizeof(honec::Section);
  const size_t sections = std::min<size_t>({header.sections, room, honec::kMaxSections});
  std::byte* const table = bytes.data() + sizeof header;
  for (size_t i = 0; i < sections; ++i) {
    honec::Section section;
    std::memcpy(&section, table + i * sizeof section, sizeof section);
    if (section.kind == static_cast<uint32_t>(honec::Kind::weights) ||
        section.offset > bytes.size() || section.bytes > bytes.size() - section.offset)
      continue;
    section.checksum = hash_bytes({bytes.data() + section.offset, section.bytes});
    std::memcpy(table + i * sizeof section, &section, sizeof section);
  }
  header.checksum = honec::header_checksum(header, {table, sections * sizeof(honec::Section)});
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

HONE_FUZZ(honec) {
  const auto given = std::as_bytes(std::span(data, size));
  look(given);
  std::vector<std::byte> sealed(given.begin(), given.end());
  seal(sealed);
  look(sealed);
}

}  // namespace hone::HONE_FILE
