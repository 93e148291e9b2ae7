#include "runtime/honec.h"

#include <cstdint>
#include <vector>

#include "runtime/honec_layout.h"
#include "runtime/script.h"

namespace {

using namespace hone;

// Opening, looking and checking never crash. Nothing of the code is run.
void look(std::span<const std::byte> bytes) {
  const Result<HonecFile> file = HonecFile::parse(nullptr, bytes);
  if (!file.ok()) return;
  (void)file->verify();
  for (size_t i = 0; i < file->programs().size(); ++i)
    if (const Result<Image> image = file->image(i); image.ok())
      (void)resolve(*image, default_imports());
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  look(given);
  std::vector<std::byte> sealed(given.begin(), given.end());
  seal(sealed);
  look(sealed);
  return 0;
}
