#pragma once

#include <set>
#include <string>
#include <string_view>

// Names that C and C++ take, made of names that may be any text.

namespace hone {

// Letters, digits and underscores, of at most 200, none of them first that may not be: "conv1/x:0"
// becomes "conv1_x_0", "class" becomes "class_".
std::string c_name(std::string_view text);
std::string upper_case(std::string_view text);  // of ASCII

// Several names in one place, none of which differs from another in case alone.
class CNames {
 public:
  std::string add(std::string_view text);

 private:
  std::set<std::string> taken_;  // in upper case
};

// The text, fit for a comment of C.
std::string c_comment(std::string_view text);

}  // namespace hone
