#pragma once

#include <span>
#include <string>
#include <string_view>

// The errors that a user may meet, by classes: docs/errors.md, and 'hone help --errors'.

namespace hone::cli {

// An example is a command that fails so, whatever the machine; the scripts of the tests run it.
struct ErrorClass {
  int code = 0;  // of exit
  std::string_view name;
  std::string_view cause;
  std::string_view way_out;
  std::string_view file = "";     // what the example needs: its name,
  std::string_view content = "";  // and its text
  std::string_view example = "";
  std::string_view says = "";  // behind "hone: error: "; "..." stands for anything
};

// Sorted by exit code.
std::span<const ErrorClass> error_classes();

std::string errors_text();      // for people at a terminal
std::string errors_markdown();  // docs/errors.md

}  // namespace hone::cli
