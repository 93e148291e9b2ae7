#pragma once

namespace hone::cli {

// Memory may end where nothing can be unwound: in a destructor, in a function of std::filesystem,
// in LLVM, which is built without exceptions, or in the C library, which aborts. From this call on
// the process then ends with one line and the code of a limit, as it does where `guarded` catches
// the exception.
void expect_no_memory();

// For handlers of the signals that faults raise. Returns if no allocation has failed and the system
// still gives memory: then the signal is a fault.
void end_if_no_memory();

}  // namespace hone::cli
