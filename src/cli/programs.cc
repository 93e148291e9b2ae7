#include "cli/programs.h"

#include <algorithm>

#include "base/text.h"
#include "cli/console.h"
#include "cli/source.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone::cli {
namespace {

// The name of a program of a set: one line of ASCII.
std::string name_of(const std::string& model) {
  std::string name = escape(model);
  std::ranges::replace(name, '#', '_');
  return name;
}

}  // namespace

NamedProgram program_of(const std::string& model, Console& console) {
  return {name_of(model), [&console, model]() -> Result<Graph> {
            const SourceOptions options = {.notice = console.face().notice};
            const Source source = HONE_TRY(load_source(model, {}, options));
            if (const Graph* graph = single_graph(source.model)) return *graph;
            return no_single_graph(source.model, "a data set");
          }};
}

NamedProgram random_program(int64_t seed) {
  return {fmt::format("random:{}", seed), [seed]() -> Result<Graph> {
            return random_graph({.seed = static_cast<uint64_t>(seed),
                                 .min_steps = 8,
                                 .max_steps = 24,
                                 .max_elements = 1 << 18,
                                 .max_dim = 256,
                                 .continuous = true});
          }};
}

NamedProgram program_named(const std::string& name, Console& console) {
  std::string_view seed = name;
  if (consume_prefix(seed, "random:"))
    if (const Result<int64_t> number = parse_int(seed); number.ok()) return random_program(*number);
  return program_of(name, console);
}

std::vector<NamedProgram> zoo_programs(Console& console) {
  std::vector<NamedProgram> programs;
  for (const ZooEntry& entry : zoo_entries())
    programs.push_back(program_of(fmt::format("zoo:{}", entry.name), console));
  return programs;
}

}  // namespace hone::cli
