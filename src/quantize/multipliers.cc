#include "quantize/multipliers.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "formats/npy.h"
#include "target/multipliers.h"

namespace hone::quantize {
namespace {

constexpr int64_t kPatterns = 256;

int64_t number_of(int64_t pattern, bool is_signed) {
  return is_signed && pattern >= kPatterns / 2 ? pattern - kPatterns : pattern;
}

Status check_set(const std::vector<Multiplier>& all, const std::string& file) {
  if (all.empty()) return {};
  for (const Multiplier& each : all)
    if (each.is_signed != all[0].is_signed)
      return bad_input("'{}' and '{}' are multipliers of two kinds: signed and unsigned",
                       all[0].name, each.name)
          .within(file)
          .with_hint("list those of one kind");
  if (std::ranges::none_of(all, &Multiplier::is_exact))
    return bad_input("none of its {} multipliers is exact, to compare energy with", all.size())
        .within(file);
  return {};
}

}  // namespace

Result<Multiplier> multiplier_of(std::string name, bool is_signed, double power, double area,
                                 Tensor products) {
  const Type wanted = Type::get(DType::i32, {kPatterns, kPatterns});
  if (products.type() != wanted)
    return bad_input("the products of '{}' are {}, want {}", name, products.type().to_string(),
                     wanted.to_string());
  Multiplier m = {.name = std::move(name), .is_signed = is_signed, .power = power, .area = area};
  double sum = 0;
  for (int64_t row = 0; row < kPatterns; ++row)
    for (int64_t column = 0; column < kPatterns; ++column) {
      const int64_t product = products.integer_at(row * kPatterns + column);
      if (std::abs(product) > kMostProduct)
        return bad_input("'{}' gives {} in row {}, column {}: beyond {}", m.name, product, row,
                         column, kMostProduct);
      const int64_t error = product - number_of(row, is_signed) * number_of(column, is_signed);
      sum += static_cast<double>(error);
      m.worst_error = std::max(m.worst_error, std::abs(error));
    }
  m.mean_error = sum / static_cast<double>(kPatterns * kPatterns);
  m.products = std::move(products);
  return m;
}

Result<std::vector<Multiplier>> load_multipliers(const std::filesystem::path& target) {
  const std::string text = HONE_TRY(read_file(target, kMaxTargetText));
  std::vector<Multiplier> all;
  for (MultiplierLine& line : HONE_TRY(parse_multipliers(text, target.native()))) {
    const std::filesystem::path file = target.parent_path() / line.products;
    Result<Multiplier> made =
        multiplier_of(std::move(line.name), line.is_signed, line.power, line.area,
                      HONE_TRY(read_npy(file)));
    if (!made.ok()) return std::move(made).error().within(file.native());
    all.push_back(*std::move(made));
  }
  HONE_TRY(check_set(all, target.native()));
  return all;
}

}  // namespace hone::quantize
