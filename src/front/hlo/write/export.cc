#include "base/text.h"
#include "front/hlo/write/emit.h"
#include "front/hlo/write/print.h"
#include "front/hlo/write/write.h"

namespace hone {
namespace {

// "N 0 64 4; M 1 8 1": the name of each symbol, its least, its most and its step.
std::string symbols_text(const Graph& graph) {
  std::vector<std::string> texts;
  for (const Symbol symbol : graph.symbols())
    texts.push_back(fmt::format("{} {} {} {}", symbol.name(), symbol.min(), symbol.max(),
                                symbol.multiple_of()));
  return join(texts, "; ");
}

// A module of one function, `main`.
void fill_program(hlo::Program& program, const Model& model, hlo::Language language) {
  const Graph* graph = single_graph(model);
  if (graph == nullptr)
    throw hlo::Refusal{
        unsupported("the model is of several segments, since its shapes depend on "
                    "its data: a program of StableHLO or HLO is one graph")};
  if (!graph->is_static() && language == hlo::Language::hlo)
    throw hlo::Refusal{
        unsupported("HLO has no sizes that are open").with_hint("give them: --dim NAME=N")};
  hlo::Module& module = program.modules.emplace_back();
  module.name = program.made.emplace_back(model.name);
  hlo::Function& main = module.functions.emplace_back();
  main.name = "main";
  hlo::Ids arguments;
  for (const ModelValue& input : model.inputs) {
    main.body.parameters.push_back({.kind = hlo::ValueType::Kind::tensor, .type = input.type});
    main.body.names.push_back(program.made.emplace_back(input.name));
    arguments.push_back(main.values++);
  }
  module.symbols = program.made.emplace_back(symbols_text(*graph));
  for (const ModelValue& input : model.inputs) {
    hlo::AttributeList& given = main.parameter_attributes.emplace_back();
    if (input.type.is_static()) continue;
    std::vector<std::string> dims;
    for (const Dim dim : input.type.dims()) dims.push_back(dim.to_string());
    given.emplace_back("hone.dims", hlo::word_of(program.made.emplace_back(join(dims, ", "))));
  }
  for (const Donation& donation : graph->donations())
    main.parameter_attributes[donation.input].emplace_back("tf.aliasing_output",
                                                           hlo::number_of(donation.output));
  hlo::GraphToProgram writer(program, main, language);
  writer.measure(*graph, arguments);
  main.body.results = writer.inlined(*graph, arguments);
  const Shardings* shardings = graph->shardings();
  for (const ModelValue& output : model.outputs) {
    const auto index = static_cast<uint32_t>(main.results.size());
    hlo::AttributeList& given = main.result_attributes.emplace_back();
    if (const Sharding* one = shardings == nullptr ? nullptr : shardings->of_output(index))
      given.emplace_back("sdy.sharding", writer.sharding(*one));
    main.results.push_back({.kind = hlo::ValueType::Kind::tensor, .type = output.type});
    main.result_names.push_back(program.made.emplace_back(output.name));
  }
}

Result<std::string> written(const Model& model, hlo::Language language) {
  hlo::Program program;
  try {
    fill_program(program, model, language);
  } catch (hlo::Refusal& refusal) {
    return std::move(refusal.error);
  }
  const hlo::Module& module = program.modules.front();
  return language == hlo::Language::hlo ? hlo::print_hlo(module) : hlo::print_stablehlo(module);
}

}  // namespace

Result<std::string> print_stablehlo(const Model& model) {
  return written(model, hlo::Language::stablehlo);
}

Result<std::string> print_hlo(const Model& model) { return written(model, hlo::Language::hlo); }

}  // namespace hone
