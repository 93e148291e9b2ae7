#include "target/fingerprint.h"

#include "base/hash.h"

namespace hone {

uint64_t fingerprint(const Target& target) {
  Hasher hasher;
  hasher.add(target.cpu).add(name(target.isa));
  for (Extension extension : kExtensions)
    if (target.extensions.contains(extension)) hasher.add(name(extension));
  hasher.add(target.cores);
  for (const CacheLevel& cache : target.caches) hasher.add(cache.bytes).add(cache.cores);
  return hasher.value();
}

}  // namespace hone
