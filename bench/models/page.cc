#include "bench/models/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/file.h"

namespace hone::bench {
namespace {

// What is known of a model, by number of threads.
using ByThreads = std::map<int64_t, ModelRow>;

std::string milliseconds(double seconds) {
  return seconds < 0.01 ? fmt::format("{:.3f}", 1e3 * seconds)
                        : fmt::format("{:.1f}", 1e3 * seconds);
}

std::string line_of(const std::string& name, const ByThreads& rows) {
  std::string line = "| " + name;
  for (int64_t threads : {1, 2}) {
    const auto at = rows.find(threads);
    line += at == rows.end() ? " | | |"
                             : fmt::format(" | {} | {} | {:.2f}", milliseconds(at->second.hone),
                                           milliseconds(at->second.rival), at->second.ratio());
  }
  const bool both = rows.contains(1) && rows.contains(2);
  line += both ? fmt::format(" | {:.2f}", rows.at(1).hone / rows.at(2).hone) : " |";
  double difference = 0;
  for (const auto& [threads, row] : rows) difference = std::max(difference, row.difference);
  return line + fmt::format(" | {:.0e} |\n", difference);
}

// The best first.
std::string table_of(const std::vector<ModelRow>& rows, bool is_quantized) {
  std::map<std::string, ByThreads> models;
  for (const ModelRow& row : rows)
    if (row.is_quantized == is_quantized) models[row.name][row.threads] = row;
  std::vector<std::pair<std::string, ByThreads>> sorted(models.begin(), models.end());
  std::ranges::sort(sorted, std::greater<>(),
                    [](const auto& model) { return model.second.begin()->second.ratio(); });
  std::string table =
      "| model | hone, ms | rival, ms | ratio | 2 threads: hone | rival | ratio | 1 to 2 threads | "
      "difference |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, by_threads] : sorted) table += line_of(name, by_threads);
  return table;
}

std::string introduction(const Target& target, double shortest) {
  return fmt::format(
      "# Performance of hone's own models\n\n"
      "This page compares the times of models of hone's zoo, in hone's own export, under hone\n"
      "and under ONNX Runtime 1.30. [Performance](performance.md) has models of PyTorch. Both run\n"
      "in turns, in fp32 at batch 1 on {} ({}). hone uses its default plan by\n"
      "the prices that come with it, without tuning. A ratio above 1 says that hone is faster.\n\n"
      "A time is the one that a tenth of all runs does not exceed, because other work on the\n"
      "machine only slows runs down. Models below {:.0f} ms are not part of the means: the call "
      "of\n"
      "the rival costs some 0.1 ms.\n\n"
      "`./dev bench models --page=docs/performance-zoo.md` measures all models and writes this\n"
      "page.\n\n",
      target.cpu.empty() ? "a processor without a name" : target.cpu, name(target.isa),
      1e3 * shortest);
}

}  // namespace

double mean_ratio(const std::vector<ModelRow>& rows, int64_t threads, double shortest) {
  double sum = 0;
  int64_t count = 0;
  for (const ModelRow& row : rows)
    if (!row.is_quantized && row.threads == threads && row.rival >= shortest)
      sum += std::log(row.ratio()), ++count;
  return count == 0 ? 0 : std::exp(sum / static_cast<double>(count));
}

Status write_page(const std::filesystem::path& path, const std::vector<ModelRow>& rows,
                  const Target& target, double shortest) {
  std::string page = introduction(target, shortest);
  for (const int64_t threads : {1, 2})
    if (const double mean = mean_ratio(rows, threads, shortest); mean > 0)
      page +=
          fmt::format("Geometric mean of the ratios, threads {}: **{:.2f}**\n\n", threads, mean);
  page += table_of(rows, false);
  page +=
      "\n*1 to 2 threads* is the time of hone on one thread over that on two. *difference* is the\n"
      "largest difference between both outputs, in parts of the output's largest number.\n";
  if (std::ranges::none_of(rows, &ModelRow::is_quantized)) return write_file_atomic(path, page);
  page +=
      "\n## Quantized models\n\n"
      "These are models of the zoo in QDQ form, which both runtimes multiply as u8 by i8. Weights\n"
      "have a scale for each feature. Biases are left out, because ONNX Runtime takes them only\n"
      "as operands of its convolutions. Both runtimes round in other places, and a byte more or "
      "less\n"
      "goes on from layer to layer. So outputs differ, although all sums are exact.\n\n";
  page += table_of(rows, true);
  return write_file_atomic(path, page);
}

}  // namespace hone::bench
