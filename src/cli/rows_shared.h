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

// The searches of assignments, each with how it looks for solutions. The first is the usual one.
#define HONE_CORE_SEARCH(name, doc) "|" #name
inline constexpr std::string_view kCoreSearches =
#include "assign/searches.def"
    ;
#undef HONE_CORE_SEARCH
#define HONE_CORE_SEARCH(name, doc) "; " #name ": " doc
inline constexpr Option kCoreSearchOption = {
    .name = "search",
    .take = Take::word,
    .value = "NAME",
    .doc = "how solutions are looked for (docs/assign.md)"
#include "assign/searches.def"
    ,
    .fallback = kCoreSearches.substr(1, kCoreSearches.find('|', 1) - 1),
    .words = kCoreSearches.substr(1)};
#undef HONE_CORE_SEARCH

}  // namespace hone::cli::rows
