#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/target.h"

// The functions that libFuzzer calls, for the target that FUZZ_TARGET names.

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace hone::fuzz {
namespace {

const Target* first = nullptr;
const Target* chosen = nullptr;

[[noreturn]] void refuse(std::string_view name) {
  std::fprintf(stderr, "FUZZ_TARGET is '%.*s'. The targets:\n", static_cast<int>(name.size()),
               name.data());
  for (const Target* target = first; target != nullptr; target = target->next)
    std::fprintf(stderr, "  %s\n", target->name);
  std::exit(2);
}

}  // namespace

Entered::Entered(Target entered) : target(entered) {
  target.next = first;
  first = &target;
}

}  // namespace hone::fuzz

using namespace hone::fuzz;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* given = std::getenv("FUZZ_TARGET");
  const std::string_view name = given == nullptr ? "" : given;
  for (const Target* target = first; target != nullptr; target = target->next)
    if (name == target->name) chosen = target;
  if (chosen == nullptr) refuse(name);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->test(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  return chosen->mutate != nullptr ? chosen->mutate(data, size, max_size, seed)
                                   : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t max_size, unsigned int seed) {
  return chosen->cross != nullptr ? chosen->cross(data1, size1, data2, size2, out, max_size, seed)
                                  : 0;  // libFuzzer takes another way
}
