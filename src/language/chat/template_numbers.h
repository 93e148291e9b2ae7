#pragma once

#include "language/chat/template_value.h"

namespace hone {

// a + b and the like, as Python computes them. Refused: other kinds, and integers beyond 64 bits.
Result<TemplateValue> binary_value(std::string_view sign, const TemplateValue& a,
                                   const TemplateValue& b, TemplateBudget& budget);
Result<TemplateValue> negative_value(const TemplateValue& a);

}  // namespace hone
