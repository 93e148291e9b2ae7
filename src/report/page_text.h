#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hone {

// A text from outside, such as a name in a model, as a page shows it: UTF-8 of at most `most`
// bytes, and what is cut is in the middle. Bytes that are not UTF-8 are written as \xHH; control
// characters and those that change the direction of the text around them, as \u{HHHH}.
std::string page_text(std::string_view text, size_t most = 300);

// For use in HTML or SVG, in an element or between quotes.
std::string html(std::string_view text);

}  // namespace hone
