#include "target/fingerprint.h"

#include "base/hash.h"

namespace hone {
namespace {

Hasher of_instructions(const Target& target) {
  Hasher hasher;
  hasher.add(target.cpu).add(name(target.isa));
  for (Extension extension : kExtensions)
    if (target.extensions.contains(extension)) hasher.add(name(extension));
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
  for (const CacheLevel& cache : target.caches)
    if (cache.cores == 1) hasher.add(cache.bytes);
  return hasher.value();
}

}  // namespace hone
