#pragma once

#include <optional>
#include <vector>

#include "language/chat/template_value.h"

// Methods of Python's str, on marked text. Letters outside of ASCII have no other case here.

namespace hone {

// Where characters begin, and the end of the text.
std::vector<size_t> character_starts(std::string_view text);
int64_t character_count(std::string_view text);

enum class StripSide : uint8_t { both, left, right };
// Without the characters at its ends; nothing: without blanks.
MarkedText stripped(const MarkedText& text, StripSide side, std::optional<std::string_view> chars);
MarkedText upper_case(const MarkedText& text);
MarkedText lower_case(const MarkedText& text);
MarkedText capitalized(const MarkedText& text);
MarkedText title_case(const MarkedText& text);  // of str.title(): a letter after none is upper

// The first `most` places; below 0: all.
MarkedText replaced(const MarkedText& text, std::string_view from, const MarkedText& to,
                    int64_t most);
// At the separator, or, without one, at runs of blanks.
std::vector<MarkedText> split_text(const MarkedText& text,
                                   std::optional<std::string_view> separator, int64_t most,
                                   bool from_right);
std::vector<MarkedText> split_text_lines(const MarkedText& text, bool keeps_ends);

// The first or last place in bytes; nothing: none. In a time that grows with the text alone.
std::optional<size_t> find_text(std::string_view text, std::string_view part);
bool is_python_blank(char32_t code);

}  // namespace hone
