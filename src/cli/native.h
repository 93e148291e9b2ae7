#pragma once

#include "cli/arguments.h"
#include "session/native.h"

// What the command line says of native code.

namespace hone::cli {

class Console;

// Where nothing else is said, what is compiled is kept in the user's folder, or nowhere.
enum class DefaultCache : uint8_t { user, none };
// --target, --isa, --threads, --plan, --plan-seed, --without, --cache.
Result<NativeOptions> native_options(const Arguments& arguments, Console& console,
                                     DefaultCache cache = DefaultCache::user);
// The plans of a file, in place of those of --plan; for as many threads as --threads says.
Status take_plans(NativeOptions& options, const std::string& file, std::string_view option,
                  const Arguments& arguments, Console& console);
// For what is not compiled: an error if one of them is given.
Status refuse_native_options(const Arguments& arguments);

}  // namespace hone::cli
