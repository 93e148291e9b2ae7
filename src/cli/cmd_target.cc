#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machines.h"
#include "cli/source.h"
#include "cost/prices.h"
#include "target/probe.h"
#include "target/target.h"

namespace hone::cli {
namespace {

Isa level_of(const Arguments& arguments) {
  return arguments.given("isa") ? isa_from_name(arguments.text("isa")).value() : kIsas.back();
}

}  // namespace

Status cmd_target_show(const Arguments& arguments, Console& console) {
  Target target = HONE_TRY(load_target(arguments.text("FILE")));
  console.write(print(restricted(std::move(target), level_of(arguments))));
  return {};
}

Status cmd_target_list(const Arguments&, Console& console) {
  const Target host = HONE_TRY(host_target());
  TextTable table("llrlll", {"target", "level", "cores", "caches", "memory", "extensions"});
  for (auto isa = kIsas.rbegin(); isa != kIsas.rend(); ++isa) {
    if (*isa > host.isa) continue;
    const Target target = restricted(host, *isa);
    std::vector<std::string> caches;
    for (const CacheLevel& cache : target.caches) caches.push_back(format_bytes(cache.bytes));
    std::vector<std::string_view> extensions;
    for (Extension e : kExtensions)
      if (target.extensions.contains(e)) extensions.push_back(name(e));
    table.add_row({target.name, std::string(name(*isa)), std::to_string(target.cores),
                   join(caches, ", "), format_bytes(target.memory_bytes), join(extensions, ", ")});
  }
  console.write(table.to_string());
  return {};
}

Status cmd_target_prices(const Arguments& arguments, Console& console) {
  const Target target = restricted(
      HONE_TRY(load_target(arguments.text("FILE"))), level_of(arguments));
  return write_text(arguments.text("output"), print(Prices(), target.name), console);
}

Status cmd_target_probe(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output");
  const std::unique_ptr<Progress> progress = console.progress();
  const Target target = HONE_TRY(probe_target({.seconds = arguments.real("seconds"),
                                               .isa = level_of(arguments),
                                               .progress = progress.get(),
                                               .cancel = &console.cancel()}));
  return write_text(path, print(target), console);
}

}  // namespace hone::cli
