#include "session/donations.h"

#include <algorithm>

#include "base/text.h"

namespace hone {
namespace {

Result<uint32_t> index_of(std::string_view what, const std::vector<ModelValue>& values,
                          const std::string& name) {
  const auto found = std::ranges::find(values, name, &ModelValue::name);
  if (found != values.end()) return static_cast<uint32_t>(found - values.begin());
  std::vector<std::string> known;
  for (const ModelValue& value : values) known.push_back(excerpt(value.name));
  return bad_input("there is no {} '{}'", what, excerpt(name))
      .with_hint(fmt::format("the model has {}", join(known, ", ")));
}

}  // namespace

Result<Model> with_donations(const Model& model,
                             const std::map<std::string, std::string>& outputs) {
  const Graph* const graph = single_graph(model);
  if (graph == nullptr)
    return unsupported(
        "'{}' is a tree of segments, which keep their inputs; donate is for one graph",
        excerpt(model.name));
  Graph donating = *graph;
  for (const auto& [input, output] : outputs) {
    const Donation wanted = {HONE_TRY(index_of("input", model.inputs, input)),
                             HONE_TRY(index_of("output", model.outputs, output))};
    const Type held = model.inputs[wanted.input].type, written = model.outputs[wanted.output].type;
    if (held != written)
      return bad_input("output '{}' is {}, but input '{}', in which it is to lie, is {}",
                       excerpt(output), written.to_string(), excerpt(input), held.to_string());
    const auto other = std::ranges::find_if(donating.donations(), [&](const Donation& one) {
      return one.input == wanted.input || one.output == wanted.output;
    });
    if (other == donating.donations().end())
      donating.add_donation(wanted.input, wanted.output);
    else if (*other != wanted)
      return bad_input("output '{}' lies in input '{}' already, so '{}' cannot lie in '{}'",
                       excerpt(model.outputs[other->output].name),
                       excerpt(model.inputs[other->input].name), excerpt(output), excerpt(input));
  }
  Model made = model;
  std::get<GraphSegment>(made.segments[0].kind).graph =
      std::make_shared<const Graph>(std::move(donating));
  return made;
}

}  // namespace hone
