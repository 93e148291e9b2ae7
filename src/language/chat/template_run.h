#pragma once

#include "language/chat/template_syntax.h"

namespace hone {

// The loop that a block stands in.
struct TemplateLoop {
  TemplateValue::List items;
  int64_t index = 0;
};

// The text that the template writes with these variables. Refused: all that Python's Jinja refuses,
// and more than `work` (see TemplateBudget).
Result<MarkedText> run_template(const TemplateNode& tree, const TemplateValue::Dict& variables,
                                int64_t work);

}  // namespace hone
