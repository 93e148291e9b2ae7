#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace hone {

// The ops and inputs of generated terms.
struct Family {
  std::string_view name;
  std::string_view doc;
  int max_ops = 0;          // of terms, where all families are searched
  std::string_view inputs;  // as in families.def
  std::string_view ops;
};
std::span<const Family> families();

// A family, read.
struct TermOps {
  std::vector<Type> inputs;
  std::vector<double> constants;  // of f32[]
  std::vector<Op> ops;
};
Result<TermOps> term_ops(const Family& family);
Result<Family> family_named(std::string_view name);  // an error has a hint

}  // namespace hone
