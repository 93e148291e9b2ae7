#include "tests/rules/rules_testing.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"

namespace hone {

std::vector<Rule> committed_rules() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(HONE_TEST_DIR "/../rules"))
    if (file.path().extension() == ".rules") files.push_back(file.path());
  std::ranges::sort(files);
  std::vector<Rule> all;
  for (const auto& file : files) {
    std::vector<Rule> rules =
        parse_rules(read_file(file, 1 << 24).value(), {.file = file.string()}).value();
    std::ranges::move(rules, std::back_inserter(all));
  }
  return all;
}

}  // namespace hone
