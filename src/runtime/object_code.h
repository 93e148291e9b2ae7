#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/memory.h"

namespace hone {

// A function outside of an object that its code may call.
struct Import {
  std::string_view name;
  const void* address;
};

// memcpy, memmove and memset.
std::span<const Import> default_imports();

// Machine code in memory, from an ELF64 relocatable for x86-64 as compilers write it for the small
// code model with position independence. No page of it is writable and executable; after loading
// only its .data and .bss are writable.
//
// Loading is safe for any bytes: it reads only inside of them and writes only to the new memory.
// Running the loaded code needs trust in its maker.
class ObjectCode {
 public:
  static constexpr int64_t kMaxBytes = int64_t{1} << 28;  // in memory

  // The bytes are not needed afterwards. An object is refused, with the reason, if it calls a
  // function that is not imported. It is also refused if it needs more of a linker than this one
  // does (thread-local data, constructors, absolute 32-bit addresses, ...).
  static Result<std::shared_ptr<const ObjectCode>> load(
      std::span<const std::byte> bytes, std::span<const Import> imports = default_imports());

  // The address of a function that the object defines for others; null if there is none.
  const void* function(std::string_view name) const;
  std::vector<std::string_view> functions() const;  // names, in order

 private:
  friend class ObjectLoader;
  ObjectCode() = default;

  Memory memory_;
  std::map<std::string, const void*, std::less<>> functions_;
};

}  // namespace hone
