#include "prove/taso_rules.h"

#include <optional>

#include "front/onnx/wire.h"

namespace hone {
namespace {

using onnx_io::WireField;
using onnx_io::WireReader;
using onnx_io::WireType;

// Small messages can claim many objects of a few bytes each.
constexpr size_t kMaxObjects = 1 << 20;

class TasoReader {
 public:
  explicit TasoReader(std::span<const std::byte> file) : file_(file) {}

  Result<std::vector<TasoRule>> rules() {
    std::vector<TasoRule> rules;
    HONE_TRY(fields(
        0, file_.size(),
        [&](const WireField& field) -> Status {
          if (field.number == 1) rules.push_back(HONE_TRY(rule(field)));
          return {};
        }));
    return rules;
  }

 private:
  template <class Take>
  Status fields(size_t begin, size_t end, const Take& take) {
    WireReader reader(file_, begin, end);
    while (!reader.done()) {
      if (++objects_ > kMaxObjects)
        return over_limit("the file has more than {} fields", kMaxObjects);
      HONE_TRY(take(HONE_TRY(reader.next())));
    }
    return {};
  }

  // The fields of a message within a field.
  template <class Take>
  Status within(const WireField& field, const Take& take) {
    if (field.type != WireType::bytes)
      return bad_input("field {} at byte {} is no message", field.number, field.begin);
    return fields(field.value, field.end, take);
  }

  Result<int64_t> number(const WireField& field) {
    if (field.type != WireType::varint)
      return bad_input("field {} at byte {} is no number", field.number, field.begin);
    uint64_t value = 0;
    onnx_io::for_each_varint(file_.subspan(field.value, field.end - field.value),
                             [&](uint64_t one) { value = one; });
    return static_cast<int64_t>(value);
  }

  // A message of numbers, all of which it must have.
  Status numbers(const WireField& field, std::span<int64_t> into) {
    std::vector<bool> known(into.size(), false);
    HONE_TRY(within(
        field,
        [&](const WireField& one) -> Status {
          const size_t at = static_cast<size_t>(one.number) - 1;
          if (at >= into.size()) return {};
          into[at] = HONE_TRY(number(one));
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
    HONE_TRY(within(
        whole,
        [&](const WireField& field) -> Status {
          int64_t both[2] = {};
          if (field.number == 1) type = HONE_TRY(number(field));
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
    HONE_TRY(within(
        whole,
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
