#pragma once

#include "ir/op_def.h"

#include <string>
#include <string_view>
#include <vector>

// The op table for people: all of it comes from the OpDefs.

namespace hone::cli {

std::vector<std::string_view> op_families();  // in the order of ops.def
std::vector<Opcode> ops_of_family(std::string_view family);

std::string op_signature(const OpDef& def);  // "add(lhs, rhs)"
std::string op_summary(const OpDef& def);    // one line without a period
std::string dtypes_text(DTypeSet dtypes);    // "f64 f32 f16 bf16", "all"
std::string op_text(const OpDef& def);       // for a terminal
std::string ops_markdown();                  // docs/ops.md

}  // namespace hone::cli
