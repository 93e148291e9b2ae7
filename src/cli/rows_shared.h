#pragma once

#include "cli/command.h"

// Rows of the table of commands (commands.cc): options that many of them have, each with a sentence
// of its own.

namespace hone::cli::rows {

constexpr Option output_option(std::string_view doc, std::string_view fallback = "",
                               std::string_view value = "FILE") {
  return {.name = "output",
          .letter = 'o',
          .take = value == "FILE" ? Take::output : Take::output_path,
          .value = value,
          .doc = doc,
          .fallback = fallback};
}
constexpr Option json_option(std::string_view doc) {
  return {.name = "json", .take = Take::output, .value = "FILE", .doc = doc};
}
constexpr Option log_option(std::string_view doc) {
  return {.name = "log", .take = Take::file, .value = "FILE", .doc = doc};
}
constexpr Option budget_option(std::string_view doc) {
  return {.name = "budget", .take = Take::text, .value = "TIME", .doc = doc, .fallback = "3m"};
}
constexpr Option seed_option(std::string_view doc) {
  return {.name = "seed", .take = Take::integer, .value = "N", .doc = doc, .fallback = "0"};
}

}  // namespace hone::cli::rows
