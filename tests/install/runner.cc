// A user of the library that only loads and runs what was compiled: the one kernel of -x for 8
// numbers, whose object is the argument.

#include <runtime/kernel_abi.h>
#include <runtime/object_code.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto code = hone::ObjectCode::load(std::as_bytes(std::span(bytes)));
  if (!code.ok() || (*code)->functions().size() != 1) return 3;
  const void* const address = (*code)->function((*code)->functions().front());
  const auto run = reinterpret_cast<hone::PhaseFn>(const_cast<void*>(address));
  alignas(hone::kBufferAlignment) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  alignas(hone::kBufferAlignment) float y[8] = {};
  void* const buffers[] = {x, y};
  run(buffers, nullptr, nullptr, 0, 1);
  for (int i = 0; i < 8; ++i)
    if (y[i] != -x[i]) return 1;
  return hone::ObjectCode::load({}).ok() ? 4 : 0;
}
