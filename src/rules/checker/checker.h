#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

// Checks proofs that hold at all sizes. A certificate says how the places of the results and the
// loops of sums are divided, and which bounds hold. The checker spells both sides out along these
// steps and compares them. It shares the ops' access relations and the text of rules with the
// prover, and nothing else: no file here includes one of the folder above but rule.h and
// statement.h.

namespace hone {

// As it stands in a file: not trusted.
struct Certificate {
  std::string rule;
  uint64_t statement = 0;  // statement_hash of the rule
  size_t line = 0;         // where it begins
  std::vector<std::string> steps;
};

// "certificate @name hash", then a step on each line. Errors have their place as "file:line".
Result<std::vector<Certificate>> parse_certificates(std::string_view text, std::string_view file);

// True if the certificate proves the rule; the error says where it does not.
Status check_certificate(const Rule& rule, const Certificate& certificate);

}  // namespace hone
