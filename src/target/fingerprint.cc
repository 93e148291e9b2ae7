#include "target/fingerprint.h"

#include <algorithm>

#include "base/hash.h"

namespace hone {
namespace {

constexpr size_t kOwnCaches = 2;  // of a core

Hasher of_instructions(const Target& target) {
  Hasher hasher;
  hasher.add(target.cpu).add(name(target.isa));
  for (Extension extension : kExtensions)
    if (target.extensions.contains(extension)) hasher.add(name(extension));
  if (target.gpu) hasher.add(target.gpu->capability).add(target.gpu->warps);
  return hasher;
}

}  // namespace

uint64_t fingerprint(const Target& target) {
  Hasher hasher = of_instructions(target);
  hasher.add(target.cores);
  for (const CacheLevel& cache : target.caches) hasher.add(cache.bytes).add(cache.cores);
  return hasher.value();
}

uint64_t core_fingerprint(const Target& target) {
  Hasher hasher = of_instructions(target);
  for (size_t i = 0; i < std::min(target.caches.size(), kOwnCaches); ++i)
    hasher.add(target.caches[i].bytes);
  return hasher.value();
}

}  // namespace hone
