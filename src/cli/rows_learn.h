#pragma once

#include "cli/commands.h"
#include "cli/rows_plans.h"
#include "cli/rows_price.h"
#include "cli/rows_train.h"

// Rows of the table of commands (commands.cc), which alone includes this: the commands 'hone train'
// and 'hone eval'.

namespace hone::cli::rows {

inline constexpr Command kTrainCommands[] = {
    {.name = "train",
     .summary = "Train a small network",
     .text =
         "TRAIN is a text: data, layers, loss and optimizer, a line for each (docs/learning.md). "
         "The folder gets checkpoints, events for TensorBoard, and the network with the weights of "
         "the best epoch as model.hone. Interrupted training goes on where it was.",
     .positionals = kTrainText,
     .options = kTrain,
     .examples = kTrainExamples,
     .run = &cmd_train},
    {.name = "train cost",
     .summary = "Make a model that prices kernels, from measurements of this machine",
     .text = "DATA is a folder of 'hone dataset build'. The networks learn the error of the "
             "analytic price of a schedule. Each network leaves out the programs of a part of the "
             "data; these programs show how far the model is to be trusted. Commands that plan for "
             "the target use the model from then on, and say so. Interrupted training goes on "
             "where it was. With --from, networks begin with those of another target's model. A "
             "model of several sets counts on all processors, and says less on one that it has "
             "not seen (docs/learned-prices.md). With --budget the machine is measured first, by "
             "programs "
             "on one thread; a second call adds to the measurements of the first.",
     .positionals = kTrainCostData,
     .options = kTrainCost,
     .examples = kTrainCostExamples,
     .run = &cmd_train_cost},
    {.name = "train plans",
     .summary = "Make a model of whole plans, from plans that ran in turns",
     .text = kTrainPlansText,
     .positionals = kPlansOfSets,
     .options = kTrainPlans,
     .examples = kTrainPlansExamples,
     .run = &cmd_train_plans},
    {.name = "train layout",
     .summary = "Make a model that orders layouts of whole programs",
     .text = "A network on the graph of a program learns which of two assignments of layouts is "
             "the faster one. Equal assignments count once, with their mean time. -o names the "
             "model, and 'hone eval DATA --model' judges it by programs that it has not learned "
             "from. No plan is made with it (docs/graph-models.md).",
     .positionals = kTrainLayoutData,
     .options = kTrainLayout,
     .examples = kTrainLayoutExamples,
     .run = &cmd_train_layout},
    {.name = "train placement",
     .summary = "Make a policy that places nodes on devices",
     .text = "A network looks at the graph and the System, and scores the devices of each node. It "
             "first copies the best placement that quick rivals and a short annealing find of "
             "drawn problems. Then it draws placements, and makes those more likely that the "
             "timeline finds better than the others. Interrupted training goes on where it was, "
             "with the same bits (docs/placement.md).",
     .options = kTrainPlacement,
     .examples = kTrainPlacementExamples,
     .run = &cmd_train_placement},
};

inline constexpr Command kEvalCommands[] = {
    {.name = "eval",
     .summary = "Judge prices by kernels that were measured",
     .text = "Prints three figures for each kind of kernel. The first says how well prices order "
             "its schedules (tau). The second says how much slower the first by price, or the best "
             "of the first five, is than the best of all. The third says how far prices are from "
             "times. It judges the analytic price as it is, with fitted coefficients, and learned. "
             "--model judges a model by the kernels of programs that it has not learned from. "
             "Without it, a model is trained for each of several splits of the programs, and means "
             "have intervals of 95 % over the splits. --task fusion judges absolute times, of all "
             "kernels of 5 us and more by the planner's schedule: means and medians of the error. "
             "For graphs with configurations, it judges networks on graphs. Each kernel is left "
             "out in turn; of several programs some are left out, and of one program a third of "
             "its different configurations.",
     .positionals = kEvalData,
     .options = kEval,
     .examples = kEvalExamples,
     .run = &cmd_eval},
    {.name = "eval price",
     .summary = "Judge the learned price by processors and programs that it has not seen",
     .text = kEvalPriceText,
     .positionals = kEvalPriceData,
     .options = kEvalPrice,
     .examples = kEvalPriceExamples,
     .run = &cmd_eval_price},
    {.name = "eval plans",
     .summary = "Judge models of whole plans by programs that they have not seen",
     .text = kEvalPlansText,
     .positionals = kPlansOfSets,
     .options = kEvalPlans,
     .examples = kEvalPlansExamples,
     .run = &cmd_eval_plans},
    {.name = "eval placement",
     .summary = "Judge the policy of placement by its rivals, on drawn problems",
     .text = kEvalPlacementText,
     .options = kEvalPlacement,
     .examples = kEvalPlacementExamples,
     .run = &cmd_eval_placement},
};

}  // namespace hone::cli::rows
