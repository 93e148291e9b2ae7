#pragma once

#include <memory>
#include <string>

#include "session/compiled.h"
#include "worker/remote_model.h"

// --hosts and --secret: models that run on a worker.

namespace hone::cli {

class Arguments;
class Console;

// --secret, which is required.
Result<std::string> given_secret(const Arguments& arguments);

// The worker that --hosts names, which has answered. A compiled model is for one device, so that is
// what the hosts have. Options of which a worker knows nothing are refused.
Result<std::shared_ptr<Worker>> given_worker(const Arguments& arguments);

// MODEL, a compiled file or one that is compiled now, and its inputs; it was sent to the worker.
Result<CompiledModel> given_on_worker(std::shared_ptr<Worker> worker, const Arguments& arguments,
                                      Console& console);

}  // namespace hone::cli
