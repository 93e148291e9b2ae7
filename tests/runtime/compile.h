#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// Objects for tests, from the C++ compiler in $CXX.

namespace hone::tested {

// An object of C++ source without includes. Same text and options give the same object, which is
// compiled once per process.
std::shared_ptr<const std::string> compile(std::string_view source, std::string_view options = "");

std::span<const std::byte> bytes_of(const std::string& text);

}  // namespace hone::tested
