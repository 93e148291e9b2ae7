#include "rules/statement.h"

#include "base/hash.h"

namespace hone {

uint64_t statement_hash(const Rule& rule) {
  Rule statement = rule;
  statement.name = "r";
  statement.rung = Rung::none;
  statement.floats = FloatEffect::unknown;
  statement.within.clear();
  return hash_string(print(statement));
}

}  // namespace hone
