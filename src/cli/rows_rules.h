#pragma once

#include "cli/commands.h"
#include "cli/rows_model.h"
#include "cli/rules.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands
// 'hone rules', and options of 'hone optimize'.

namespace hone::cli::rows {

inline constexpr std::string_view kRulesText =
    "A file of rules has pairs of graphs that compute the same, under a guard, and how far that "
    "was shown. docs/rules.md describes it.";

inline constexpr Positional kRuleFiles[] = {
    {.name = "FILE", .take = Take::file, .doc = "a file of rules", .repeats = true}};
inline constexpr Positional kListedRules[] = {
    {.name = "FILE",
     .take = Take::file,
     .doc = "a file of rules (default: the rules that hone has built in)",
     .optional = true,
     .repeats = true}};
inline constexpr Positional kNamedRule[] = {
    {.name = "FILE",
     .take = Take::file,
     .doc = "a file of rules (default: the rules that hone has built in)",
     .optional = true},
    {.name = "NAME", .take = Take::text, .doc = "a rule of it"}};

inline constexpr Positional kRuleProofs[] = {
    {.name = "FILE", .take = Take::file, .doc = "a file of rules"},
    {.name = "PROOFS", .take = Take::file, .doc = "the certificates of their proofs"}};
inline constexpr Example kRulesCheckExamples[] = {
    {"hone rules check rules/dot.rules rules/dot.proofs", "check the proofs of a file"}};

inline constexpr Option kRulesVerify[] = {
    output_option("write the rules that are true to this file, with how far that was shown"),
    {.name = "guards", .doc = "give a rule that is refuted the weakest guard that makes it true"},
    {.name = "corrections",
     .doc = "if a rule is wrong in a few boxes of its results, let it compute these as its left "
            "side does"},
    {.name = "proofs",
     .take = Take::output,
     .value = "FILE",
     .doc = "write certificates of the proofs for all sizes to this file"},
    seed_option("seed of the random numbers"),
    {.name = "verbose", .doc = "say for each rule why it is not shown further"},
    json_option("write a row for each rule; - is the standard output, without the table")};
inline constexpr Example kRulesVerifyExamples[] = {
    {"hone rules verify rules/dot.rules", "how far each rule is shown to be true"},
    {"hone rules verify new.rules -o rules/new.rules --proofs rules/new.proofs",
     "keep the true ones, and their proofs"},
    {"hone rules verify new.rules --guards -o rules/new.rules",
     "find the sizes at which the others are true"},
    {"hone rules verify new.rules --corrections -o rules/new.rules",
     "recompute the boxes in which the others are wrong"}};
inline constexpr Positional kRuleFamily[] = {
    {.name = "FAMILY", .take = Take::text, .doc = "the ops and inputs of terms", .optional = true}};
inline constexpr Option kRulesGenerate[] = {
    {.name = "list", .doc = "list the families"},
    {.name = "all",
     .doc = "search all families, each up to the ops that --list says, or --ops if that is fewer; "
            "with --guards, one op fewer at the sizes of these. -o is a folder, which also keeps "
            "states: an interrupted search goes on from them"},
    {.name = "ops",
     .take = Take::integer,
     .value = "N",
     .doc = "most ops of a term",
     .fallback = "3",
     .low = 1,
     .high = 6},
    {.name = "max-terms",
     .take = Take::integer,
     .value = "N",
     .doc = "stop with an error at more different terms that are parts of others; each takes 40 "
            "bytes",
     .fallback = "50000000",
     .low = 1,
     .high = int64_t{1} << 31},
    {.name = "memory",
     .take = Take::integer,
     .value = "MIB",
     .doc = "memory for terms that are parts of none, 32 bytes each (40 if an op has three "
            "operands); the rest goes to a temporary file",
     .fallback = "1024",
     .low = 1,
     .high = 1 << 20},
    {.name = "max-candidates",
     .take = Take::integer,
     .value = "N",
     .doc = "stop with an error at more different candidates; each takes about 100 bytes",
     .fallback = "20000000",
     .low = 1,
     .high = int64_t{1} << 31},
    {.name = "jobs",
     .letter = 'j',
     .take = Take::integer,
     .value = "N",
     .doc = "threads (default: one per core)",
     .low = 1,
     .high = 1024},
    {.name = "guards",
     .doc = "look for rules that are true only at some sizes, and give them guards"},
    {.name = "proofs",
     .take = Take::output,
     .value = "FILE",
     .doc = "write certificates of the proofs for all sizes to this file"},
    {.name = "rejected",
     .take = Take::output,
     .value = "FILE",
     .doc = "write the candidates that are not true to this file, with where they fail"},
    {.name = "state",
     .take = Take::output,
     .value = "FILE",
     .doc = "keep the verified candidates in this file; an interrupted search goes on from it"},
    output_option("where the rules go; - is the standard output", "-", "PATH"),
    seed_option("seed of the random numbers")};
inline constexpr Example kRulesGenerateExamples[] = {
    {"hone rules generate dot -o dot.rules", "rules about products of matrices, up to 3 ops"},
    {"hone rules generate --list", "the families"},
    {"hone rules generate --all --ops 1 --guards -o found",
     "all families, graphs of one op; without --ops it takes minutes"}};
inline constexpr Example kRulesListExamples[] = {
    {"hone rules list", "a line for each rule that hone has built in"},
    {"hone rules list rules/dot.rules", "a line for each rule"}};
inline constexpr Example kRulesShowExamples[] = {
    {"hone rules show dot_associates", "a built-in rule as text"},
    {"hone rules show rules/dot.rules dot_associates", "the rule as text"}};

inline constexpr Example kRulesExplainExamples[] = {
    {"hone rules explain rules/dot.rules dot_associates",
     "how far it is shown, and what floats do"}};

inline constexpr Positional kForeignFile[] = {
    {.name = "FILE", .take = Take::file, .doc = "a file of rules: FILE.pb, or lines of terms"}};
inline constexpr Option kRulesImport[] = {
    {.name = "pairs", .doc = "each two lines are one rule with two results, as in Tensat's files"},
    {.name = "proofs",
     .take = Take::output,
     .value = "FILE",
     .doc = "write certificates of the proofs for all sizes to this file"},
    output_option("write the rules that are true to this file"),
    seed_option("seed of the random numbers"),
    json_option("write a row for each rule; - is the standard output, without the table")};
inline constexpr Example kRulesImportExamples[] = {
    {"hone rules import graph_subst.pb -o taso.rules", "verify TASO's rules"},
    {"hone rules import multi.txt --pairs -o multi.rules", "lines of Tensat with two results"}};
inline constexpr Option kRulesExport[] = {
    output_option("where the lines go; - is the standard output", "-")};
inline constexpr Example kRulesExportExamples[] = {
    {"hone rules export rules/dot.rules -o dot.txt", "rules about products, for Tensat"}};
inline constexpr Option kRulesNeeded[] = {
    {.name = "max-nodes",
     .take = Take::integer,
     .value = "N",
     .doc = "most nodes of the e-graph of each rule",
     .fallback = "2000",
     .low = 1,
     .high = 1'000'000},
    output_option("write the rules that are needed to this file")};
inline constexpr Example kRulesNeededExamples[] = {
    {"hone rules needed rules/dot.rules rules/movement.rules", "the rules that add something new"}};

// ---- optimize ----------------------------------------------------------------------------------

inline constexpr Option kOptimizeOwn[] = {
    output_option("where the graph goes: FILE.onnx, or FILE.hone with its weights next to it in "
                  "FILE.npz; - is the standard output, without large constants"),
    {.name = "budget",
     .take = Take::text,
     .value = "TIME",
     .doc = "time to search: 30s, 2m, 1h",
     .fallback = "1m"},
    {.name = "rules",
     .take = Take::file,
     .value = "FILE",
     .doc = "rewrite by the rules of this file in place of hone's; they are verified first. Rules "
            "that are not proved for all sizes, or that floats suffer from, are left out",
     .repeats = true},
    {.name = "max-nodes",
     .take = Take::integer,
     .value = "N",
     .doc = "most nodes of the e-graph; 0: no e-graph",
     .fallback = "20000",
     .high = 10'000'000},
    {.name = "margin",
     .take = Take::real,
     .value = "PERCENT",
     .doc = "smallest gain by price that is taken, because prices are not exact (docs/optimize.md)",
     .fallback = "2.5"},
    {.name = "check",
     .doc = "read the result again, compile it, and compare it with the model on random inputs, as "
            "'hone check' does"},
    json_option("write the result as data; - is the standard output"),
    {.name = "rewrites",
     .take = Take::output,
     .value = "FILE",
     .doc =
         "write the rewrites as a plan, for --plan of other commands; - is the standard output"}};
inline constexpr Option kOptimizeNative[] = {kTargetOption, kIsaOption,     kPricesOption,
                                             kCostOption,   kThreadsOption, kAssumeRangeOption};
inline constexpr Option kOptimizeMemory[] = {kMemoryLimit};
inline constexpr auto kOptimize =
    joined(kOptimizeOwn, kOnnxFile, kSizesOfInputs, kOptimizeMemory, kOptimizeNative);
inline constexpr Example kOptimizeExamples[] = {
    {"hone optimize model.onnx -o faster.onnx", "a minute at most"},
    {"hone optimize zoo:squeezenet -o squeezenet.hone --budget 20s --check",
     "and check that both compute the same"},
    {"hone optimize model.onnx -o faster.onnx --rules my.rules", "your own rules"}};

inline constexpr Command kRulesCommands[] = {
    {.name = "rules list",
     .summary = "List rewrite rules",
     .text = kRulesText,
     .positionals = kListedRules,
     .examples = kRulesListExamples,
     .run = &cmd_rules_list},
    {.name = "rules show",
     .summary = "Print a rewrite rule",
     .text = kRulesText,
     .positionals = kNamedRule,
     .examples = kRulesShowExamples,
     .run = &cmd_rules_show},
    {.name = "rules explain",
     .summary = "Explain how far a rewrite rule is shown to be true, and why no further",
     .text = "Verifies the rule as 'hone rules verify' does. For each rung it says what was seen, "
             "or why the rung was not reached. Then it says what floats do, and whether hone uses "
             "such a rule by default. Fails if the rule is refuted (docs/rules.md).",
     .positionals = kNamedRule,
     .examples = kRulesExplainExamples,
     .run = &cmd_rules_explain},
    {.name = "rules generate",
     .summary = "Find rewrite rules by trying all small terms",
     .text = "Makes all terms over the ops of a family, from small to large, and evaluates them in "
             "a prime field. Two terms that compute the same are a candidate. Candidates that add "
             "nothing new are pruned, and the others verified as by 'hone rules verify' "
             "(docs/rules.md).",
     .positionals = kRuleFamily,
     .options = kRulesGenerate,
     .examples = kRulesGenerateExamples,
     .run = &cmd_rules_generate},
    {.name = "rules verify",
     .summary = "Show that rewrite rules are true, or refute them",
     .text = "Tests each rule on random numbers of a prime field and on polynomials at small "
             "sizes. Then it proves the rule for all sizes if it can, and compares the floats of "
             "both sides. Fails if a rule is refuted, cannot be tested, or claims more than was "
             "shown (docs/rules.md).",
     .positionals = kRuleFiles,
     .options = kRulesVerify,
     .examples = kRulesVerifyExamples,
     .run = &cmd_rules_verify},
    {.name = "rules check",
     .summary = "Check proofs of rewrite rules",
     .text =
         "Follows the steps of certificates that 'hone rules verify --proofs' wrote, and compares "
         "the results of both sides of a rule. It shares no code with the search for proofs. Fails "
         "if a certificate is refused, or a rule that claims all sizes has none (docs/rules.md).",
     .positionals = kRuleProofs,
     .examples = kRulesCheckExamples,
     .run = &cmd_rules_check},
    {.name = "rules import",
     .summary = "Verify rewrite rules of other systems, and keep those that are true",
     .text = "Reads TASO's file of substitutions (FILE.pb), or one rule a line as Tensat writes "
             "them: (matmul 0 ?a ?b). It trusts nothing: each rule gets sizes as general as its "
             "ops allow, is verified as by 'hone rules verify', and gets a guard if it is false in "
             "general. Prints the outcome for each rule (docs/rules.md).",
     .positionals = kForeignFile,
     .options = kRulesImport,
     .examples = kRulesImportExamples,
     .run = &cmd_rules_import},
    {.name = "rules export",
     .summary = "Write rewrite rules for other systems",
     .text = "Writes one rule a line, as Tensat reads them. The format has no sizes and no guards: "
             "a rule that it cannot say, or that is not true without them, is left out "
             "(docs/rules.md).",
     .positionals = kRuleFiles,
     .options = kRulesExport,
     .examples = kRulesExportExamples,
     .run = &cmd_rules_export},
    {.name = "rules needed",
     .summary = "Find the rewrite rules that do not follow from the others",
     .text = "Leaves out rules one by one, the largest first, if an e-graph derives them by the "
             "rest. It uses sizes of which no two are equal. Lists both sets (docs/rules.md).",
     .positionals = kRuleFiles,
     .options = kRulesNeeded,
     .examples = kRulesNeededExamples,
     .run = &cmd_rules_needed},
};

}  // namespace hone::cli::rows
