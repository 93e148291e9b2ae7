#pragma once

#include <cstddef>
#include <cstdint>

// A fuzz target is a file NAME.cc with
//
//   HONE_FUZZ(NAME) { ... }
//
// which gets bytes as `data` and `size`, and fails a HONE_CHECK, a sanitizer or a limit where hone
// is wrong. All targets are one binary: tools/fuzz.sh runs one of them.

namespace hone::fuzz {

// How a target changes an input of its own form, and makes one of two. Both write at most max_size
// bytes, and say how many. Without them libFuzzer changes bytes.
using Mutate = size_t (*)(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
using Cross = size_t (*)(const uint8_t* first, size_t first_size, const uint8_t* second,
                         size_t second_size, uint8_t* out, size_t max_size, unsigned int seed);

struct Target {
  const char* name;
  void (*test)(const uint8_t* data, size_t size);
  Mutate mutate = nullptr;
  Cross cross = nullptr;
  const Target* next = nullptr;
};

// Enters a target into the list that main.cc chooses from, before main.
struct Entered {
  explicit Entered(Target target);
  Target target;
};

}  // namespace hone::fuzz

// HONE_FUZZ(name), HONE_FUZZ(name, mutate), HONE_FUZZ(name, mutate, cross)
#define HONE_FUZZ(name, ...)                                 \
  static void fuzz_##name(const uint8_t* data, size_t size); \
  static const hone::fuzz::Entered entered_##name(           \
      {#name, fuzz_##name __VA_OPT__(, ) __VA_ARGS__});      \
  static void fuzz_##name([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t size)
