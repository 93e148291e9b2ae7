#include "prove/taso_rules.h"

#include <optional>

#include "formats/wire.h"

namespace hone {
namespace {

// Small messages can claim many objects of a few bytes each.
constexpr size_t kMaxObjects = 1 << 20;

class TasoReader {
 public:
  explicit TasoReader(std::span<const std::byte> file) : file_(file) {}

  Result<std::vector<TasoRule>> rules() {
    std::vector<TasoRule> rules;
    HONE_TRY(fields(
        WireBytes::all(file_),
        [&](const WireField& field) -> Status {
          if (field.number == 1) rules.push_back(HONE_TRY(rule(field)));
          return {};
        }));
    return rules;
  }

 private:
  template <class Take>
  Status fields(const WireBytes& message, const Take& take) {
    return each_field(message, [&](const WireField& field) -> Status {
      if (++objects_ > kMaxObjects)
        return over_limit("the file has more than {} fields", kMaxObjects);
      return take(field);
    });
  }

  // A message of numbers, all of which it must have.
  Status numbers(const WireField& field, std::span<int64_t> into) {
    std::vector<bool> known(into.size(), false);
    HONE_TRY(fields(
        HONE_TRY(field.message()),
        [&](const WireField& one) -> Status {
          const size_t at = static_cast<size_t>(one.number) - 1;
          if (at >= into.size()) return {};
          into[at] = HONE_TRY(one.integer());
          known[at] = true;
          return {};
        }));
    for (size_t i = 0; i < known.size(); ++i)
      if (!known[i]) return bad_input("the message at byte {} lacks field {}", field.begin, i + 1);
    return {};
  }

  Result<TasoOp> op(const WireField& whole) {
    TasoOp op;
    std::optional<int64_t> type;
    HONE_TRY(fields(
        HONE_TRY(whole.message()),
        [&](const WireField& field) -> Status {
          int64_t both[2] = {};
          if (field.number == 1) type = HONE_TRY(field.integer());
          if (field.number != 2 && field.number != 3) return {};
          HONE_TRY(numbers(field, both));
          if (field.number == 2)
            op.inputs.push_back({both[0], both[1]});
          else
            op.parameters[both[0]] = both[1];
          return {};
        }));
    if (!type) return bad_input("the operator at byte {} has no type", whole.begin);
    op.type = *type;
    return op;
  }

  Result<TasoRule> rule(const WireField& whole) {
    TasoRule rule;
    HONE_TRY(fields(
        HONE_TRY(whole.message()),
        [&](const WireField& field) -> Status {
          if (field.number == 1) rule.source.push_back(HONE_TRY(op(field)));
          if (field.number == 2) rule.target.push_back(HONE_TRY(op(field)));
          if (field.number != 3) return {};
          int64_t all[4] = {};
          HONE_TRY(numbers(field, all));
          rule.outputs.push_back({all[0], all[1], all[2], all[3]});
          return {};
        }));
    return rule;
  }

  std::span<const std::byte> file_;
  size_t objects_ = 0;
};

}  // namespace

Result<std::vector<TasoRule>> parse_taso_rules(std::span<const std::byte> file,
                                               std::string_view where) {
  Result<std::vector<TasoRule>> rules = TasoReader(file).rules();
  if (!rules.ok()) return std::move(rules).error().within(where);
  return rules;
}

}  // namespace hone
