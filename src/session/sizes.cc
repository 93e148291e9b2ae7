#include "session/sizes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "ir/summary.h"
#include "session/echo.h"

namespace hone {
namespace {

Result<Ints> parse_shape(std::string_view label, std::string_view given, std::string_view value) {
  Ints dims;
  if (value.empty()) return dims;  // a scalar
  for (std::string_view part : split(value, 'x')) {
    const Result<int64_t> dim = parse_int(part);
    if (!dim.ok() || *dim < 0 || *dim > kMaxElements)
      return usage_error("{} {}: '{}' is not a dim", label, excerpt(given), excerpt(part))
          .with_hint("the form is x=1x3x224x224");
    dims.push_back(*dim);
  }
  return dims;
}

}  // namespace

Result<std::pair<std::string, std::string>> split_pair(std::string_view label,
                                                       const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == 0 || sign == std::string::npos)
    return usage_error("{}: '{}' has not the form NAME=VALUE", label, excerpt(text));
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

Result<Sizes> parse_sizes(std::span<const std::string> dims, std::span<const std::string> shapes,
                          const Labels& labels) {
  Sizes sizes;
  for (const std::string& text : dims) {
    const auto [name, value] = HONE_TRY(split_pair(labels.size, text));
    const Result<int64_t> number = parse_int(value);
    if (!number.ok())
      return usage_error("{} {}: '{}' is not an integer", labels.size, excerpt(text),
                         excerpt(value));
    if (*number < 0)
      return usage_error("{} {}: '{}' is not a size", labels.size, excerpt(text), excerpt(value));
    if (!sizes.dims.emplace(name, *number).second)
      return usage_error("{}: '{}' is given twice", labels.size, excerpt(name));
  }
  for (const std::string& text : shapes) {
    const auto [name, value] = HONE_TRY(split_pair(labels.shape, text));
    if (!sizes.shapes.emplace(name, HONE_TRY(parse_shape(labels.shape, text, value))).second)
      return usage_error("{}: '{}' is given twice", labels.shape, excerpt(name));
  }
  return sizes;
}

SizeBinder::SizeBinder(const Graph& signature, const Face& face)
    : signature_(signature), face_(face), shapes_(signature.inputs().size()) {}

Status SizeBinder::add(const Sizes& sizes) {
  for (const auto& [name, size] : sizes.dims) HONE_TRY(add_dim(name, size));
  for (const auto& [name, shape] : sizes.shapes) {
    Result<size_t> i = input_index(signature_, name);
    if (!i.ok()) return std::move(i).error().about(face_.labels.shape);
    HONE_TRY(add_shape(*i, shape));
  }
  return {};
}

Status SizeBinder::add_dim(std::string_view name, int64_t size) {
  const std::string_view label = face_.labels.size;
  const std::vector<Symbol> symbols = signature_.symbols();
  const auto symbol = std::ranges::find(symbols, name, &Symbol::name);
  if (symbol == symbols.end()) {
    std::vector<std::string> known;
    for (const Symbol& one : symbols) known.emplace_back(one.name());
    return usage_error("{}: the graph has no symbol '{}'", label, excerpt(name))
        .with_hint(known.empty() ? "all of its dims are numbers"
                                 : fmt::format("it has {}", name_list(known)));
  }
  const Status fits = check_binding(*symbol, size);
  if (!fits.ok())
    return usage_error("{} {}={}: {}", label, excerpt(name), size, fits.error().what());
  bindings_.insert_or_assign(std::string(name), size);
  return {};
}

Status SizeBinder::add_shape(size_t i, std::span<const int64_t> dims) {
  const ValueId input = signature_.inputs()[i];
  const Type type = signature_.type(input);
  Ints shape(dims.begin(), dims.end());
  const auto wrong = [&](std::string_view why) {
    return usage_error("input '{}' is {}, but [{}] is given{}", excerpt(signature_.name(input)),
                       type.to_string(), excerpt(join(shape, ", ")), why);
  };
  if (static_cast<int>(dims.size()) != type.rank())
    return wrong(fmt::format(": rank {} instead of {}", dims.size(), type.rank()));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim wanted = type.dim(static_cast<int>(axis));
    Status fits = match_dim(wanted.bind(bindings_), dims[axis], bindings_);
    if (!fits.ok()) return wrong(fmt::format(": axis {}: {}", axis, fits.error().what()));
  }
  shapes_[i] = std::move(shape);
  return {};
}

Status SizeBinder::add_smallest(const SmallestSizes& smallest) {
  Bindings all = smallest_bindings(signature_, bindings_);
  if (smallest && all.size() > bindings_.size()) all = smallest(bindings_);
  std::vector<std::string> chosen;
  for (const auto& [name, dim] : all)
    if (!bindings_.contains(name)) chosen.push_back(fmt::format("{}={}", name, dim.to_string()));
  if (!chosen.empty())
    face_.note(fmt::format("{} (the smallest; {} or {} sets others)", join(chosen, ", "),
                           face_.labels.size, face_.labels.shape));
  bindings_ = all;
  // A size such as N + M says nothing about N until now.
  for (size_t i = 0; i < shapes_.size(); ++i)
    if (const std::optional<Ints> shape = shapes_[i]) HONE_TRY(add_shape(i, *shape));
  return {};
}

Result<Bindings> size_bindings(const Graph& signature, const Sizes& sizes, const Face& face) {
  SizeBinder binder(signature, face);
  HONE_TRY(binder.add(sizes));
  return binder.bindings();
}

Result<Bindings> all_size_bindings(const Graph& signature, const Sizes& sizes, const Face& face,
                                   const SmallestSizes& smallest) {
  SizeBinder binder(signature, face);
  HONE_TRY(binder.add(sizes));
  HONE_TRY(binder.add_smallest(smallest));
  return binder.bindings();
}

ImportOptions import_sizes(const Sizes& sizes) {
  ImportOptions import;
  import.dims = sizes.dims;
  import.shapes = sizes.shapes;
  return import;
}

std::string size_text(const Bindings& sizes, const Labels& labels) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : sizes)
    texts.push_back(fmt::format("{} {}={}", labels.size, name, size.to_string()));
  return join(texts, " ");
}

Result<size_t> input_index(const Graph& signature, std::string_view name) {
  std::vector<std::string> names;
  for (ValueId v : signature.inputs()) names.emplace_back(signature.name(v));
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  std::string hint = did_you_mean(name, names);
  if (hint.empty())
    hint = names.empty() ? "it has none" : fmt::format("it has {}", name_list(names));
  return usage_error("the graph has no input '{}'", excerpt(name)).with_hint(hint);
}

}  // namespace hone
