#include "transport/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/crc32c.h"
#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "transport/proof.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

using Header = std::array<std::byte, Frame::kHeaderBytes>;

Header header_of(const Frame& frame) {
  Header header;
  encode(frame, header);
  return header;
}

TEST(Frame, IsReadAsItIsWritten) {
  const Frame frame = {.kind = FrameKind::data,
                       .from = 3,
                       .to = -4,
                       .tag = 5,
                       .payload = 6,
                       .size = 7,
                       .number = 8,
                       .offset = 9,
                       .checksum = 10};
  EXPECT_EQ(*decode(header_of(frame)), frame);
}

TEST(Frame, RefusesEachDamage) {
  const Header good = header_of({.kind = FrameKind::small, .payload = 6, .size = 6});
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    Header bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(decode(bad).ok()) << bit;
  }
}

TEST(Frame, RefusesLengthsThatDoNotSuitItsKind) {
  const auto error = [](const Frame& frame) { return decode(header_of(frame)); };
  EXPECT_THAT(error({.kind = FrameKind::small, .payload = 4097, .size = 4097}),
              refuses(ErrorCode::bad_input, "4097 bytes ... 4096"));
  EXPECT_THAT(error({.kind = FrameKind::small, .payload = 3, .size = 4}), says("4 bytes ... 3"));
  EXPECT_THAT(error({.kind = FrameKind::data, .payload = (256 << 10) + 1}), says("262144"));
  EXPECT_THAT(error({.kind = FrameKind::beat, .payload = 1}), says("1 bytes ... 0"));
  EXPECT_THAT(error({.kind = FrameKind::offer, .size = uint64_t{1} << 60}), says("at most"));
  EXPECT_THAT(error({.kind = static_cast<FrameKind>(8)}), says("kind 8"));
}

struct Kept : FrameReader::Sink {
  std::vector<std::byte> memory;
  std::vector<std::string> texts;
  Result<std::span<std::byte>> room(const Frame& frame) override {
    memory.resize(frame.payload);
    return std::span(memory);
  }
  Status take(const Frame&, std::span<const std::byte> payload) override {
    texts.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
    return {};
  }
};

TEST(FrameReader, TakesStreamsApartWhereverTheyAreCut) {
  std::vector<std::byte> stream;
  const std::vector<std::string> texts = {"one", "", "three and more"};
  for (const std::string& text : texts) {
    const Header header = header_of({.kind = FrameKind::small,
                                     .payload = static_cast<uint32_t>(text.size()),
                                     .size = text.size(),
                                     .checksum = crc32c(text)});
    stream.insert(stream.end(), header.begin(), header.end());
    for (const char c : text) stream.push_back(static_cast<std::byte>(c));
  }
  for (size_t step = 1; step < 80; ++step) {
    FrameReader reader(true);
    Kept kept;
    size_t at = 0;
    bool paused = false;
    const auto read = [&](std::span<std::byte> bytes) -> Result<size_t> {
      paused = !paused;
      if (paused) return size_t{0};
      const size_t count = std::min({bytes.size(), step, stream.size() - at});
      std::copy_n(stream.begin() + static_cast<ptrdiff_t>(at), count, bytes.begin());
      at += count;
      return count;
    };
    while (at < stream.size()) EXPECT_TRUE(reader.read(read, kept, 1000).ok());
    EXPECT_EQ(kept.texts, texts) << step;
  }
}

TEST(FrameReader, RefusesAPayloadThatIsDamaged) {
  const Header header =
      header_of({.kind = FrameKind::small, .payload = 3, .size = 3, .checksum = crc32c("abc")});
  std::string stream(reinterpret_cast<const char*>(header.data()), header.size());
  stream += "abd";
  FrameReader reader(true);
  Kept kept;
  size_t at = 0;
  EXPECT_THAT(reader.read(
                  [&](std::span<std::byte> bytes) -> Result<size_t> {
                    const size_t count =
                        stream.copy(reinterpret_cast<char*>(bytes.data()), bytes.size(), at);
                    at += count;
                    return count;
                  },
                  kept, 1000),
              says("damaged"));
}

// ---- Proofs ------------------------------------------------------------------------------------

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Proof, IsThatOfTheStandards) {  // FIPS 180-4 and RFC 4231
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(hex(hmac_sha256(bytes_of(long_key),
                            bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace hone::HONE_FILE
