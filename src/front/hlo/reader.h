#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "front/hlo/program.h"

// The readers of the two languages share this: a cursor over the source, and errors with a place.

namespace hone::hlo {

// Thrown within src/front/hlo, and caught by those who call from outside.
struct Refusal {
  Error error;
};

// Against hostile texts.
inline constexpr int kMostDepth = 64;              // of brackets, types and regions
inline constexpr size_t kMostValues = 1U << 26U;   // of a function
inline constexpr int64_t kMostImported = 1 << 21;  // instructions, calls written out
inline constexpr int64_t kMostDevices = 1 << 16;   // replicas, partitions

// Element types by their names in the two languages. None: hone lacks the type.
std::optional<DType> stablehlo_element(std::string_view word);
std::optional<DType> hlo_element(std::string_view word);
std::string_view stablehlo_element_name(DType type);
std::string_view hlo_element_name(DType type);

class Cursor {
 public:
  explicit Cursor(const Program& program) : program_(program), text_(*program.source) {}

  size_t at() const { return at_; }
  void go_to(size_t offset) { at_ = offset; }
  std::string_view text() const { return text_; }
  std::string_view from(size_t begin) const { return text_.substr(begin, at_ - begin); }

  // Skips blanks and comments first, as all of the following do.
  bool at_end();
  char peek();  // '\0' at the end
  bool sees(std::string_view spelling);
  bool accept(std::string_view spelling);  // of punctuation
  void expect(std::string_view spelling, std::string_view after);
  bool sees_word(std::string_view word);
  bool accept_word(std::string_view word);
  // Letters, digits, and _ . $ -; "": there is none. With `dashes` a - inside is part of it.
  std::string_view word(bool dashes = false);
  std::string_view need_word(std::string_view what, bool dashes = false);
  // Without its quotes; escapes stay.
  std::string_view quoted();
  // An integer; an error if there is none.
  int64_t integer();
  // A number as it is spelled: -1.5e-3, 0x7F, inf; "": there is none.
  std::string_view number();
  // From the bracket at hand to behind the one that closes it; quotes are skipped. With `angles` <
  // and > are brackets too.
  std::string_view brackets(bool angles = true);

  [[noreturn]] void refuse(size_t offset, Error error) const;
  [[noreturn]] void refuse(Error error) const { refuse(at_, std::move(error)); }
  // The word that stands there, for messages: "'foo'", "the end of the file".
  std::string seen();

 private:
  void skip();

  const Program& program_;
  std::string_view text_;
  size_t at_ = 0;
};

// Counts how deep brackets nest.
class Depth {
 public:
  Depth(int& depth, const Cursor& cursor);
  Depth(const Depth&) = delete;
  ~Depth() { --depth_; }

 private:
  int& depth_;
};

}  // namespace hone::hlo
