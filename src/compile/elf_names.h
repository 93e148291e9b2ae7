#pragma once

#include <string>
#include <string_view>

namespace hone {

// Renames the functions for others of an object (runtime/object_code.h): the new names begin with
// `prefix`. So objects that had the same names can be linked together. The library that they are
// linked into keeps these names to itself. The object has passed ObjectCode::load().
std::string with_prefix(std::string object, std::string_view prefix);

}  // namespace hone
