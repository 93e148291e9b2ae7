#include "bench/tune/rows.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/onnx_runtime.h"
#include "target/fingerprint.h"

namespace hone::bench {
namespace {

std::filesystem::path file() { return root() / "build" / "bench" / "tune.rows"; }

std::map<std::string, Row> known_rows() {
  std::map<std::string, Row> rows;
  std::ifstream lines(file());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object()) rows[row.value("key", "")] = row.value("row", Row());  // not cut off
  }
  return rows;
}

}  // namespace

Result<Row> kept_row(std::string_view name, const Target& target, std::string_view version,
                     const std::function<Result<Row>()>& measure) {
  const std::string key = fmt::format("{} {:016x} {}", name, fingerprint(target), version);
  std::map<std::string, Row> rows = known_rows();
  if (rows.contains(key)) return rows[key];
  Row row = HONE_TRY(measure());
  std::ofstream lines(file(), std::ios::app);
  lines << nlohmann::json{{"key", key}, {"processor", target.cpu}, {"row", row}}.dump()
        << std::endl;
  if (!lines) return bad_input("cannot write {}", file().native());
  return row;
}

}  // namespace hone::bench
