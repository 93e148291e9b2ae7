#include <cstdlib>
#include <string_view>

#include "base/planted.h"

// In a module of Python that was compiled with the faults, the one that HONE_FAULT names is on.

namespace hone {
namespace {

Fault named_fault() {
  const char* const given = std::getenv("HONE_FAULT");
  const std::string_view name = given != nullptr ? given : "";
#define HONE_FAULT(fault, doc) \
  if (name == #fault) return Fault::fault;
#include "base/planted.def"
  return Fault::none;
}

}  // namespace

Fault planted = named_fault();

}  // namespace hone
