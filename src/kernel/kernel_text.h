#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "kernel/kernel_body.h"

// Writes and reads what a kernel computes, as text: docs/formats/kernel-text.md. It stands for
// itself, so that a kernel can be read, built and measured again without the model that it came
// from.

namespace hone {

// True if it is what body_of() makes, as far as kernels rely on it.
Status check(const KernelBody& body);

std::string print(const KernelBody& body);
// Inverse of print; checks the body. `file` is for error texts, "file:line:column".
Result<KernelBody> parse_kernel(std::string_view text, std::string_view file);

}  // namespace hone
