#include "tests/base/share_testing.h"

#include <cstdlib>

namespace hone::tested {
namespace {

// `./test` says at which commit it is, in hexadecimal digits.
uint64_t commit() {
  const char* text = std::getenv("HONE_COMMIT");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 16);
}

bool is_sweep() {
  static const bool is_set = std::getenv("HONE_SWEEP") != nullptr;
  return is_set;
}

}  // namespace

bool in_share(uint64_t number, uint64_t parts) {
  static const uint64_t first = commit();
  return is_sweep() || (number + first) % parts == 0;
}

uint64_t share_of(uint64_t cases, uint64_t parts) { return is_sweep() ? cases : cases / parts; }

bool in_share_by_name(uint64_t parts) {
  uint64_t sum = 0;
  for (const char* c = testing::UnitTest::GetInstance()->current_test_info()->name(); *c != 0; ++c)
    sum += static_cast<unsigned char>(*c);
  return in_share(sum, parts);
}

}  // namespace hone::tested
