#include "cli/hosts.h"

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/memory_limit.h"
#include "cli/native.h"
#include "cli/source.h"
#include "session/served.h"

namespace hone::cli {
namespace {

Status refuse_options_of_here(const Arguments& arguments) {
  for (const std::string_view option : {"trace", "backend", "numerics", "checked", "batch"})
    if (arguments.given(option))
      return usage_error("--{} is for models that run here; --hosts runs {} on a worker", option,
                         excerpt(arguments.text("MODEL")));
  return {};
}

// A model that is not compiled yet, as a file for this worker.
Result<CompiledModel> compiled_for(const Worker& worker, const std::filesystem::path& folder,
                                   const Arguments& arguments, Console& console) {
  HONE_TRY(refuse_verify(arguments));
  NativeOptions native = HONE_TRY(native_options(arguments, console));
  if (native.target.isa > worker.machine().isa)
    return unsupported("the worker {} has instructions {}, and {} is compiled for {}",
                       worker.name(), name(worker.machine().isa), excerpt(arguments.text("MODEL")),
                       name(native.target.isa))
        .with_hint(fmt::format("--isa {}", name(worker.machine().isa)));
  Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {true}));
  const Given open = source.open;
  const Face face = limited_face(arguments, console);
  const std::unique_ptr<ServedModel> served =
      HONE_TRY(ServedModel::make(std::move(source), std::move(native), face));
  const std::string path = folder / "model.honec";
  HONE_TRY(served->save(path, HONE_VERSION));
  return open_compiled(path, open, arguments.integer("seed"), face);
}

}  // namespace

Result<std::string> given_secret(const Arguments& arguments) {
  if (!arguments.given("secret"))
    return usage_error("--secret FILE is missing: callers and workers prove that they know it")
        .with_hint("head -c 32 /dev/urandom | base64 > FILE");
  const std::string file = arguments.text("secret");
  return parse_secret(HONE_TRY(read_file(file, kMaxSecretText)), file);
}

Result<std::vector<Host>> given_hosts(const Arguments& arguments) {
  const std::string file = arguments.text("hosts");
  return parse_hosts(HONE_TRY(read_file(file, kMaxHostsText)), file);
}

Result<bool> names_one_worker(const Arguments& arguments) {
  if (!arguments.given("hosts") || arguments.given("devices")) return false;
  const std::vector<Host> hosts = HONE_TRY(given_hosts(arguments));
  return hosts.size() == 1 && hosts[0].devices == 1;
}

Result<std::shared_ptr<Worker>> given_worker(const Arguments& arguments) {
  HONE_TRY(refuse_options_of_here(arguments));
  const std::string secret = HONE_TRY(given_secret(arguments));
  const std::vector<Host> hosts = HONE_TRY(given_hosts(arguments));
  return Worker::call(hosts[0].address, secret, HONE_VERSION);
}

Result<CompiledModel> given_on_worker(std::shared_ptr<Worker> worker, const Arguments& arguments,
                                      Console& console) {
  const Face face = limited_face(arguments, console);
  const TempDir folder = HONE_TRY(TempDir::create(std::filesystem::temp_directory_path()));
  CompiledModel model = HONE_TRY(names_compiled(arguments)
                                     ? given_elsewhere(arguments, console)
                                     : compiled_for(*worker, folder.path(), arguments, console));
  model.runnable = HONE_TRY(RemoteModel::make(std::move(worker), model.file, memory_limit(face)));
  return model;
}

}  // namespace hone::cli
