#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

struct TemplateToken {
  enum class Kind : uint8_t {
    text,         // between tags
    print_begin,  // {{
    print_end,
    block_begin,  // {%
    block_end,
    name,
    string,  // without its quotes
    integer,
    real,
    sign,
    end
  };
  Kind kind = Kind::end;
  std::string text = {};
  int line = 0;
};

// The template in tokens. Blanks around tags go as `trim_blocks` and `lstrip_blocks` of Jinja say,
// which Hugging Face sets: a line that holds a block alone leaves nothing.
Result<std::vector<TemplateToken>> template_tokens(std::string_view text);

// An error at a line of a template.
Error at_line(Error error, int line);

}  // namespace hone
