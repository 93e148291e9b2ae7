#pragma once

#include "cli/rows_shared.h"

// Rows of the table of commands (commands.cc), which alone includes this: options of the command
// that places buffers.

namespace hone::cli::rows {

inline constexpr Positional kAllocFile[] = {
    {.name = "FILE", .take = Take::file, .doc = "a table of buffers; - is the standard input"}};
inline constexpr Option kAllocOwn[] = {
    {.name = "capacity",
     .take = Take::text,
     .value = "N",
     .doc = "bytes of the memory, with commas between those of several spaces: 4096,65536"},
    {.name = "minimize",
     .doc = "go on below the capacity, as low as possible; the default without --capacity"},
    {.name = "deadline",
     .take = Take::real,
     .value = "S",
     .doc = "stop after this many seconds with the best placement so far; 0: no limit",
     .fallback = "0"},
    output_option("where the table goes, with offsets; - is the standard output", "-"),
    {.name = "plot",
     .take = Take::output,
     .value = "FILE",
     .doc = "draw the placement, as an SVG; - is the standard output"},
    json_option("write the result and the work that it took; - is the standard output")};
inline constexpr Option kAllocTechniques[] = {
#define HONE_TECHNIQUE(technique, what) {.name = "no-" #technique, .doc = "do without this: " what},
#include "alloc/techniques.def"
#undef HONE_TECHNIQUE
};
inline constexpr auto kAlloc = joined(kAllocOwn, kAllocTechniques);
inline constexpr Example kAllocExamples[] = {
    {"hone alloc buffers.csv --capacity 1048576 -o placed.csv",
     "exit code 1 if they do not fit; says which ones"},
    {"hone alloc buffers.csv --deadline 10 --plot placed.svg -o placed.csv",
     "as low as possible within ten seconds"},
    {"hone alloc buffers.csv --capacity 1048576 --minimize -o placed.csv",
     "below the capacity, and then as low as possible"}};

}  // namespace hone::cli::rows
