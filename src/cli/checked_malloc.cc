#include <cstdlib>
#include <new>

// MLIR does not ask whether malloc failed. The binary, which holds its archives, is linked with
// --wrap=malloc: what they call is this.

extern "C" {

void* __real_malloc(size_t bytes);  // NOLINT: the linker's name of malloc

void* __wrap_malloc(size_t bytes) {  // NOLINT: the linker's name for it
  void* memory = __real_malloc(bytes);
  if (memory == nullptr && bytes != 0) {
    if (const std::new_handler handler = std::get_new_handler()) handler();
    throw std::bad_alloc();
  }
  return memory;
}
}
