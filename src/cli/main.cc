#include <fmt/core.h>

int main() {
  fmt::print("hone {}\n", HONE_VERSION);
  return 0;
}
