#pragma once

#include "cli/commands.h"
#include "cli/rows_shared.h"
#include "target/system.h"
#include "target/target.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands
// about machines and what was compiled.

namespace hone::cli::rows {

// ---- doctor ------------------------------------------------------------------------------------

inline constexpr Option kDoctor[] = {{.name = "json", .doc = "print it as data"}};
inline constexpr Example kDoctorExamples[] = {
    {"hone doctor", "problems of this machine, and what to do about them"}};

// ---- target ------------------------------------------------------------------------------------

inline constexpr std::string_view kTargetText =
    "A target is a machine as data: cores, instructions, caches and rates. Its text may be edited. "
    "Rates of a machine that was not measured are estimates.";
inline constexpr Positional kTargetFile[] = {
    {.name = "FILE",
     .take = Take::file,
     .doc = "a target file; host, the default: this machine",
     .optional = true}};
inline constexpr Option kIsa = {.name = "isa",
                                .take = Take::word,
                                .value = "LEVEL",
                                .doc = "leave out the instructions above this level",
                                .words = kIsaWords};
inline constexpr Option kTargetShow[] = {kIsa};
inline constexpr Option kTargetOutput =
    output_option("where the text goes; - is the standard output", "-");
inline constexpr std::string_view kTargetPricesText =
    "The analytic price of a kernel counts instructions, waits and bytes. This text has the cost "
    "of each of them, for one target. It may be edited and given to commands that compile, as "
    "--prices FILE.";
inline constexpr Option kTargetPrices[] = {kTargetOutput, kIsa};
inline constexpr Example kTargetPricesExamples[] = {
    {"hone target prices -o my.prices", "the default coefficients, for this machine"},
    {"hone target prices my.target --isa avx2", "the machine of a file, without AVX-512"}};
inline constexpr Option kTargetProbe[] = {
    kTargetOutput,
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "seconds to measure, at most 60; some samples are always taken",
     .fallback = "10"},
    kIsa,
    {.name = "device",
     .take = Take::text,
     .value = "NAME",
     .doc = "cuda or cuda:N: a GPU, as its driver describes it; the bandwidth of its memory is "
            "measured"}};
inline constexpr Example kTargetShowExamples[] = {
    {"hone target show", "this machine, with estimated rates"},
    {"hone target show my.target", "a file, checked"},
    {"hone target show my.target --isa avx2 > avx2.target", "the same machine without AVX-512"},
    {"hone target show sm_90", "a GPU that has a name"}};
inline constexpr Example kTargetListExamples[] = {
    {"hone target list", "this machine, level by level, its GPUs, and GPUs that have a name"}};
inline constexpr Example kTargetProbeExamples[] = {
    {"hone target probe -o my.target", "measures this machine"},
    {"hone target probe --isa avx2 -o avx2.target", "the rates of code without AVX-512"}};

// ---- system ------------------------------------------------------------------------------------

inline constexpr std::string_view kSystemText =
    "A system is several devices and the links between them as data: targets, levels such as "
    "hosts, axes of a mesh, and kinds of links (docs/formats/system-text.md). Its text may be "
    "edited.";
inline constexpr Positional kSystemWhat[] = {
    {.name = "SYSTEM",
     .take = Take::file,
     .doc = "a system file, or a name and sizes such as ring:8 (see 'hone system presets')"}};
inline constexpr Option kSystemShow[] = {
    {.name = "target",
     .take = Take::file,
     .value = "FILE",
     .doc = "the target of each device of a system with a name (default: this machine)"},
    {.name = "from",
     .take = Take::integer,
     .value = "DEVICE",
     .doc = "print the routes from this device to the others instead",
     .low = 0,
     .high = kMaxDevices - 1},
    {.name = "all-reduce",
     .take = Take::integer,
     .value = "BYTES",
     .doc = "print instead how long a sum of this size over all devices takes, by each schedule "
            "and the timeline",
     .low = 1,
     .high = int64_t{1} << 40}};
inline constexpr Example kSystemShowExamples[] = {
    {"hone system show local:2", "this machine as two devices"},
    {"hone system show tree:4x8 --target my.target > my.system", "four hosts of eight devices"},
    {"hone system show my.system", "a file, checked"},
    {"hone system show my.system --from 0", "the links that messages from device 0 cross"},
    {"hone system show tree:2x4 --all-reduce 1000000", "schedules of a megabyte, the best first"}};
inline constexpr std::string_view kSystemCalibrateText =
    "Measures copies of memory and messages of 1 byte to 64 MiB between two devices, which are "
    "threads of this process, and fits a latency and a bandwidth. A line does not fit all sizes: "
    "the errors are printed. Windows are 32 messages at once; their gap is the least time from one "
    "to the next. The links of the first transport that is measured are kept: commands plan by "
    "them "
    "what --devices exchange. With -o they go to a file instead, as a system of this machine.";
inline constexpr Option kSystemCalibrate[] = {
    {.name = "transport",
     .take = Take::word,
     .value = "TRANSPORT",
     .doc = "threads of one process, shared_memory between processes, tcp on loopback, or all of "
            "these; mpi between processes of mpirun",
     .fallback = "all",
     .words = "threads|shared_memory|tcp|all|mpi"},
    {.name = "devices",
     .take = Take::integer,
     .value = "N",
     .doc = "devices of the system; each is a part of this machine",
     .fallback = "2",
     .low = 1,
     .high = kMaxDevices},
    {.name = "seconds",
     .take = Take::real,
     .value = "S",
     .doc = "seconds to measure, at most 60; some samples are always taken",
     .fallback = "6"},
    output_option("where the system goes instead; - is the standard output"),
    {.name = "target",
     .take = Take::file,
     .value = "FILE",
     .doc = "this machine as a target, as 'hone target probe' writes it (default: estimated)"}};
inline constexpr Example kSystemCalibrateExamples[] = {
    {"hone system calibrate", "the cost of a message over each transport, kept for --devices"},
    {"hone system calibrate --transport tcp --devices 4 -o my.system",
     "this machine as four devices that speak over TCP"}};
inline constexpr Example kSystemPresetsExamples[] = {{"hone system presets", "names and sizes"}};

// ---- cache -------------------------------------------------------------------------------------

inline constexpr std::string_view kCacheText =
    "Code of kernels and complete plans are kept in a folder, so that each is made only once on a "
    "machine. They may be removed at any time. Without --cache it is the folder hone in "
    "$XDG_CACHE_HOME, which is ~/.cache by default.";
inline constexpr Option kCache = {
    .name = "cache", .take = Take::file, .value = "DIR", .doc = "the folder of compiled code"};
inline constexpr Option kCacheOptions[] = {kCache};
inline constexpr Option kCacheGc[] = {{.name = "limit",
                                       .take = Take::integer,
                                       .value = "MIB",
                                       .doc = "largest size of all entries together; 0 removes all",
                                       .fallback = "1024",
                                       .high = int64_t{1} << 24},
                                      kCache};
inline constexpr Example kCacheLsExamples[] = {{"hone cache ls", "the entries, last used first"}};
inline constexpr Example kCacheVerifyExamples[] = {
    {"hone cache verify", "exit code 1 if some were damaged"}};
inline constexpr Example kCacheGcExamples[] = {{"hone cache gc --limit 100", "keeps 100 MiB"}};

inline constexpr Command kTargetCommands[] = {
    {.name = "target show",
     .summary = "Print a machine as text",
     .text = kTargetText,
     .positionals = kTargetFile,
     .options = kTargetShow,
     .examples = kTargetShowExamples,
     .run = &cmd_target_show},
    {.name = "target list",
     .summary = "List the levels of instructions that this machine can be compiled for",
     .text = "Prints one line for each level; 'hone target show --isa LEVEL' shows one.",
     .examples = kTargetListExamples,
     .run = &cmd_target_list},
    {.name = "target prices",
     .summary = "Print the coefficients of the analytic price as text",
     .text = kTargetPricesText,
     .positionals = kTargetFile,
     .options = kTargetPrices,
     .examples = kTargetPricesExamples,
     .run = &cmd_target_prices},
    {.name = "target probe",
     .summary = "Measure this machine",
     .text = "Measures operations per second by element type, the rate at which a core reads from "
             "each cache and from memory, and the time to start work on all cores. Each figure is "
             "the one that one sample of ten reaches, so other work on the machine matters little. "
             "It is still best to leave the machine alone.",
     .options = kTargetProbe,
     .examples = kTargetProbeExamples,
     .run = &cmd_target_probe},
};

inline constexpr Command kSystemCommands[] = {
    {.name = "system show",
     .summary = "Print several devices and the links between them as text, or their routes",
     .text = kSystemText,
     .positionals = kSystemWhat,
     .options = kSystemShow,
     .examples = kSystemShowExamples,
     .run = &cmd_system_show},
    {.name = "system presets",
     .summary = "List the systems that have a name",
     .text = "The rates of their links are plausible ones. Print a system as text to change them.",
     .examples = kSystemPresetsExamples,
     .run = &cmd_system_presets},
    {.name = "system calibrate",
     .summary = "Measure the messages of this machine",
     .text = kSystemCalibrateText,
     .options = kSystemCalibrate,
     .examples = kSystemCalibrateExamples,
     .run = &cmd_system_calibrate},
};

inline constexpr Command kCacheCommands[] = {
    {.name = "cache ls",
     .summary = "List the kernels, plans and programs in the cache",
     .text = kCacheText,
     .options = kCacheOptions,
     .examples = kCacheLsExamples,
     .run = &cmd_cache_ls},
    {.name = "cache verify",
     .summary = "Check the entries of the cache, and remove damaged ones",
     .text = kCacheText,
     .options = kCacheOptions,
     .examples = kCacheVerifyExamples,
     .run = &cmd_cache_verify},
    {.name = "cache gc",
     .summary = "Remove the entries of the cache that were unused for longest",
     .text = kCacheText,
     .options = kCacheGc,
     .examples = kCacheGcExamples,
     .run = &cmd_cache_gc},
};

}  // namespace hone::cli::rows
