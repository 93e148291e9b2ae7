#pragma once

#include "base/error.h"

// The functions that the rows of commands.cc run, each in the file of its name.

namespace hone::cli {

class Arguments;
class Console;

// Runs the hidden commands in processes of their own.
inline constexpr const char* kThisProgram = "/proc/self/exe";

Status cmd_doctor(const Arguments& arguments, Console& console);
Status cmd_demo(const Arguments& arguments, Console& console);
Status cmd_worker(const Arguments& arguments, Console& console);
Status cmd_zoo_list(const Arguments& arguments, Console& console);
Status cmd_zoo_export(const Arguments& arguments, Console& console);
Status cmd_zoo_digits(const Arguments& arguments, Console& console);
Status cmd_target_show(const Arguments& arguments, Console& console);
Status cmd_target_list(const Arguments& arguments, Console& console);
Status cmd_target_prices(const Arguments& arguments, Console& console);
Status cmd_target_probe(const Arguments& arguments, Console& console);
Status cmd_system_show(const Arguments& arguments, Console& console);
Status cmd_system_presets(const Arguments& arguments, Console& console);
Status cmd_system_calibrate(const Arguments& arguments, Console& console);
Status cmd_cache_ls(const Arguments& arguments, Console& console);
Status cmd_cache_verify(const Arguments& arguments, Console& console);
Status cmd_cache_gc(const Arguments& arguments, Console& console);
Status cmd_log_ls(const Arguments& arguments, Console& console);
Status cmd_log_show(const Arguments& arguments, Console& console);
Status cmd_log_export(const Arguments& arguments, Console& console);
Status cmd_log_import(const Arguments& arguments, Console& console);
Status cmd_log_merge(const Arguments& arguments, Console& console);
Status cmd_log_verify(const Arguments& arguments, Console& console);
Status cmd_log_gc(const Arguments& arguments, Console& console);
Status cmd_inspect(const Arguments& arguments, Console& console);
Status cmd_run(const Arguments& arguments, Console& console);
Status cmd_check(const Arguments& arguments, Console& console);
Status cmd_bench(const Arguments& arguments, Console& console);
Status cmd_explain(const Arguments& arguments, Console& console);
Status cmd_report(const Arguments& arguments, Console& console);
Status cmd_compare(const Arguments& arguments, Console& console);
Status cmd_tune(const Arguments& arguments, Console& console);
Status cmd_calibrate(const Arguments& arguments, Console& console);
Status cmd_dataset_build(const Arguments& arguments, Console& console);
Status cmd_dataset_inspect(const Arguments& arguments, Console& console);
Status cmd_dataset_merge(const Arguments& arguments, Console& console);
Status cmd_dataset_export(const Arguments& arguments, Console& console);
Status cmd_dataset_split(const Arguments& arguments, Console& console);
Status cmd_compile(const Arguments& arguments, Console& console);
Status cmd_space(const Arguments& arguments, Console& console);
Status cmd_grad(const Arguments& arguments, Console& console);
Status cmd_train(const Arguments& arguments, Console& console);
Status cmd_train_cost(const Arguments& arguments, Console& console);
Status cmd_train_plans(const Arguments& arguments, Console& console);
Status cmd_train_layout(const Arguments& arguments, Console& console);
Status cmd_train_placement(const Arguments& arguments, Console& console);
Status cmd_eval(const Arguments& arguments, Console& console);
Status cmd_eval_price(const Arguments& arguments, Console& console);
Status cmd_eval_plans(const Arguments& arguments, Console& console);
Status cmd_eval_placement(const Arguments& arguments, Console& console);
Status cmd_convert(const Arguments& arguments, Console& console);
Status cmd_quantize(const Arguments& arguments, Console& console);
Status cmd_shrink(const Arguments& arguments, Console& console);
Status cmd_conformance(const Arguments& arguments, Console& console);
Status cmd_conformance_case(const Arguments& arguments,
                            Console& console);  // the child of the above
Status cmd_fuzz(const Arguments& arguments, Console& console);
Status cmd_fuzz_cases(const Arguments& arguments, Console& console);  // its child
Status cmd_reduce(const Arguments& arguments, Console& console);
Status cmd_reduce_case(const Arguments& arguments, Console& console);  // its child
Status cmd_opt(const Arguments& arguments, Console& console);
Status cmd_optimize(const Arguments& arguments, Console& console);
Status cmd_rules_list(const Arguments& arguments, Console& console);
Status cmd_rules_show(const Arguments& arguments, Console& console);
Status cmd_rules_generate(const Arguments& arguments, Console& console);
Status cmd_rules_verify(const Arguments& arguments, Console& console);
Status cmd_rules_check(const Arguments& arguments, Console& console);
Status cmd_rules_import(const Arguments& arguments, Console& console);
Status cmd_rules_export(const Arguments& arguments, Console& console);
Status cmd_rules_needed(const Arguments& arguments, Console& console);
Status cmd_alloc(const Arguments& arguments, Console& console);
Status cmd_assign(const Arguments& arguments, Console& console);
Status cmd_place(const Arguments& arguments, Console& console);
Status cmd_shard(const Arguments& arguments, Console& console);
Status cmd_generate(const Arguments& arguments, Console& console);
Status cmd_chat(const Arguments& arguments, Console& console);
Status cmd_tokens(const Arguments& arguments, Console& console);
Status cmd_evaluate(const Arguments& arguments, Console& console);
Status cmd_embed(const Arguments& arguments, Console& console);
Status cmd_ops(const Arguments& arguments, Console& console);
Status cmd_completions(const Arguments& arguments, Console& console);
Status cmd_man(const Arguments& arguments, Console& console);
Status cmd_version(const Arguments& arguments, Console& console);
Status cmd_help(const Arguments& arguments, Console& console);

}  // namespace hone::cli
