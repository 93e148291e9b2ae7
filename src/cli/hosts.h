#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session/compiled.h"
#include "transport/hosts.h"
#include "worker/remote_model.h"

// --hosts and --secret: models that run on a worker.

namespace hone::cli {

class Arguments;
class Console;

// --secret, which is required.
Result<std::string> given_secret(const Arguments& arguments);

// The workers that --hosts names.
Result<std::vector<Host>> given_hosts(const Arguments& arguments);
// True if one device of one worker runs all of the model: it may be a compiled file then, and have
// segments.
Result<bool> names_one_worker(const Arguments& arguments);
// The one worker, which has answered. Options of which a worker knows nothing are refused.
Result<std::shared_ptr<Worker>> given_worker(const Arguments& arguments);

// MODEL, a compiled file or one that is compiled now, and its inputs; it was sent to the worker.
Result<CompiledModel> given_on_worker(std::shared_ptr<Worker> worker, const Arguments& arguments,
                                      Console& console);

}  // namespace hone::cli
