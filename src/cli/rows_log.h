#pragma once

#include "cli/commands.h"
#include "cli/rows_shared.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands 'hone log',
// about measurements.

namespace hone::cli::rows {

inline constexpr std::string_view kLogText =
    "All measurements on a machine stand in one file, with their subjects. Without --log it is "
    "$HONE_LOG, or log.db in the folder hone of $XDG_DATA_HOME, which is ~/.local/share by "
    "default. docs/log.md says when a record is used again.";
inline constexpr Option kLog = log_option("the log");
inline constexpr Option kLogOnly[] = {kLog};

// The records to print.
inline constexpr Option kLogQuery[] = {
    {.name = "kind",
     .take = Take::text,
     .value = "KIND",
     .doc = "only records of this kind, such as kernel or graph"},
    {.name = "subject",
     .take = Take::text,
     .value = "HASH",
     .doc = "only records of this kernel or graph"},
    {.name = "on",
     .take = Take::text,
     .value = "HASH",
     .doc = "only records that were taken on this target"},
    {.name = "by", .take = Take::text, .value = "VERSION", .doc = "only records by this version"}};

inline constexpr Option kLogJson[] = {
    json_option("write the same as data; - is the standard output, without the table"), kLog};
inline constexpr auto kLogLs = joined(kLogQuery, kLogJson);
inline constexpr Example kLogLsExamples[] = {
    {"hone log ls", "how much is known about each kernel and graph"},
    {"hone log ls --kind graph --json -", "only graphs, as data"}};

inline constexpr Positional kLogWhat[] = {
    {.name = "WHAT",
     .take = Take::text,
     .doc = "the number of a record, or 0x and the 16 digits of a kernel, graph or target"}};
inline constexpr Option kLogShow[] = {
    {.name = "limit",
     .take = Take::integer,
     .value = "N",
     .doc = "how many records of a kernel or graph to print, the fastest first",
     .fallback = "20"},
    kLog};
inline constexpr Example kLogShowExamples[] = {
    {"hone log show 17", "a record, with its samples"},
    {"hone log show 0x9c2b5e3f00d1a764", "a kernel as text, and its fastest schedules"}};

inline constexpr Option kLogOutput[] = {
    output_option("FILE.npz: arrays for numpy; others: JSON lines; - is the standard output", "-"),
    kLog};
inline constexpr auto kLogExport = joined(kLogQuery, kLogOutput);
inline constexpr Example kLogExportExamples[] = {
    {"hone log export -o log.jsonl", "everything, for 'hone log import' on any machine"},
    {"hone log export --kind kernel -o kernels.npz", "arrays for learning"}};

inline constexpr Positional kLogLines[] = {
    {.name = "FILE", .take = Take::file, .doc = "JSON lines; - is the standard input"}};
inline constexpr Example kLogImportExamples[] = {
    {"hone log import log.jsonl", "adds the records that the log lacks"}};
inline constexpr Positional kLogFiles[] = {{.name = "FILE",
                                            .take = Take::file,
                                            .doc = "another log, which stays as it is",
                                            .repeats = true}};
inline constexpr Example kLogMergeExamples[] = {
    {"hone log merge other.db", "adds the records that the log lacks"}};

inline constexpr Option kLogVerify[] = {
    {.name = "repair",
     .doc = "move the good rows into a new file, and keep the damaged file beside it"},
    kLog};
inline constexpr Example kLogVerifyExamples[] = {
    {"hone log verify", "exit code 1 if something is damaged"},
    {"hone log verify --repair", "keeps the good rows"}};

inline constexpr Option kLogGc[] = {
    {.name = "days",
     .take = Take::integer,
     .value = "N",
     .doc = "remove records that are older",
     .high = 1'000'000},
    {.name = "limit",
     .take = Take::integer,
     .value = "MIB",
     .doc = "keep the newest records, up to this size",
     .high = int64_t{1} << 24},
    {.name = "by", .take = Take::text, .value = "VERSION", .doc = "remove records by this version"},
    {.name = "dry-run", .doc = "only print the records that would be removed"},
    kLog};
inline constexpr Example kLogGcExamples[] = {
    {"hone log gc --days 365 --dry-run", "the records that would be removed"},
    {"hone log gc --limit 500", "keeps 500 MiB of records"}};

inline constexpr Command kLogCommands[] = {
    {.name = "log ls",
     .summary = "List the records of the log",
     .text = kLogText,
     .options = kLogLs,
     .examples = kLogLsExamples,
     .run = &cmd_log_ls},
    {.name = "log show",
     .summary = "Print a record, or all that the log knows about a kernel, graph or target",
     .text = kLogText,
     .positionals = kLogWhat,
     .options = kLogShow,
     .examples = kLogShowExamples,
     .run = &cmd_log_show},
    {.name = "log export",
     .summary = "Write the records of the log as JSON lines or as arrays",
     .text = kLogText,
     .options = kLogExport,
     .examples = kLogExportExamples,
     .run = &cmd_log_export},
    {.name = "log import",
     .summary = "Add records from JSON lines to the log",
     .text = kLogText,
     .positionals = kLogLines,
     .options = kLogOnly,
     .examples = kLogImportExamples,
     .run = &cmd_log_import},
    {.name = "log merge",
     .summary = "Add the records of other logs to the log",
     .text = kLogText,
     .positionals = kLogFiles,
     .options = kLogOnly,
     .examples = kLogMergeExamples,
     .run = &cmd_log_merge},
    {.name = "log verify",
     .summary = "Check the log, or repair a damaged one",
     .text = kLogText,
     .options = kLogVerify,
     .examples = kLogVerifyExamples,
     .run = &cmd_log_verify},
    {.name = "log gc",
     .summary = "Remove records by age, size, or version",
     .text = kLogText,
     .options = kLogGc,
     .examples = kLogGcExamples,
     .run = &cmd_log_gc},
};

}  // namespace hone::cli::rows
