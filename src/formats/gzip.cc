#include "formats/gzip.h"

#include <zlib.h>

#include <algorithm>

namespace hone {
namespace {

constexpr int kWindowBits = 15, kOfGzip = 16;
constexpr size_t kPiece = size_t{1} << 18;        // bytes that are unpacked at once
constexpr size_t kLargestFeed = size_t{1} << 30;  // zlib counts in 32 bits

// A stream of zlib, closed at the end.
class Unpacker {
 public:
  Unpacker() { HONE_CHECK(inflateInit2(&stream_, kWindowBits + kOfGzip) == Z_OK, "inflateInit2"); }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  z_stream& operator*() { return stream_; }

 private:
  z_stream stream_ = {};
};

Bytef* zlib_bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

// Gives the stream more bytes if it has used those that it had. `fed` counts those it was given.
void feed(z_stream& stream, std::string_view bytes, size_t& fed) {
  if (stream.avail_in > 0 || fed == bytes.size()) return;
  const size_t piece = std::min(bytes.size() - fed, kLargestFeed);
  stream.next_in = zlib_bytes(bytes.substr(fed));
  stream.avail_in = static_cast<uInt>(piece);
  fed += piece;
}

// Appends what one call of inflate() or deflate() gives; its code.
template <typename Call>
int append(z_stream& stream, std::string& text, Call call) {
  const size_t before = text.size();
  text.resize(before + kPiece);
  stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
  stream.avail_out = static_cast<uInt>(kPiece);
  const int code = call();
  text.resize(text.size() - stream.avail_out);
  return code;
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::string_view name, int64_t limit) {
  Unpacker unpacker;
  z_stream& stream = *unpacker;
  std::string text;
  size_t fed = 0;
  const auto place = [&] { return fmt::format("{}, byte {}", name, fed - stream.avail_in); };
  while (true) {
    feed(stream, bytes, fed);
    const int code = append(stream, text, [&] { return inflate(&stream, Z_NO_FLUSH); });
    if (static_cast<int64_t>(text.size()) > limit)
      return over_limit("the unpacked content is above the limit of {} bytes", limit)
          .at(std::string(name));
    if (code == Z_STREAM_END) {
      if (stream.avail_in == 0 && fed == bytes.size()) return text;
      inflateReset(&stream);  // another member
      continue;
    }
    if (code == Z_OK && (stream.avail_in > 0 || fed < bytes.size() || stream.avail_out == 0))
      continue;
    if (code == Z_OK || code == Z_BUF_ERROR)
      return bad_input("the gzip file ends too early: {} bytes are unpacked so far", text.size())
          .at(place());
    return bad_input("the gzip file is damaged: {}",
                     stream.msg != nullptr ? stream.msg : "its content is not of that format")
        .at(place());
  }
}

std::string gzip(std::string_view text) {
  z_stream stream = {};
  HONE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kOfGzip, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK,
             "deflateInit2");
  std::string bytes;
  size_t fed = 0;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    feed(stream, text, fed);
    const int flush = fed == text.size() ? Z_FINISH : Z_NO_FLUSH;
    code = append(stream, bytes, [&] { return deflate(&stream, flush); });
  }
  deflateEnd(&stream);
  return bytes;
}

}  // namespace hone
