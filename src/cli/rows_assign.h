#pragma once

#include "cli/rows_shared.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that takes one option per node.

namespace hone::cli::rows {

inline constexpr Positional kAssignFile[] = {
    {.name = "FILE",
     .take = Take::file,
     .doc = "a problem, plain or packed by gzip; - is the standard input"}};
inline constexpr Option kAssign[] = {
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "stop after this many seconds with the best solution so far; 0: when it is proved that "
            "none costs less",
     .fallback = "60"},
    {.name = "steps",
     .take = Take::integer,
     .value = "N",
     .doc = "stop after this many steps: if time does not end it before, the same seed then gives "
            "the same solution; 0: no limit",
     .fallback = "0"},
    seed_option("seed of what is random in the search"),
    kCoreSearchOption,
    {.name = "threads",
     .take = Take::integer,
     .value = "N",
     .doc = "1 or 2: the bound and the search side by side",
     .fallback = "2"},
    {.name = "from",
     .take = Take::file,
     .value = "FILE",
     .doc = "begin at this solution: the result is never worse"},
    {.name = "check",
     .take = Take::file,
     .value = "FILE",
     .doc = "judge this solution, and look for no other"},
    {.name = "no-reduce", .doc = "solve the problem as it is, without making it smaller before"},
    output_option("where the solution goes; - is the standard output", "-")};
inline constexpr Example kAssignExamples[] = {
    {"hone assign problem.json --seconds 10 -o solution.txt",
     "the best solution within ten seconds, a bound and the gap"},
    {"hone assign problem.json --check solution.txt", "exit code 1 if it is none; says why"},
    {"hone assign problem.json --from solution.txt --seconds 60 -o better.txt",
     "go on where another run ended"}};

}  // namespace hone::cli::rows
