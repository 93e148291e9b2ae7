#include "kernel/layout.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

Layout Layout::row_major(int rank) {
  Layout layout;
  for (int dim = 0; dim < rank; ++dim) layout.parts.push_back({.dim = dim});
  return layout;
}

bool Layout::is_row_major() const { return *this == row_major(static_cast<int>(parts.size())); }

namespace {

// A whole dim, or one half of a dim in blocks.
Status check_part(const Layout& layout, const Layout::Part& part, Type logical) {
  if (part.dim < 0 || part.dim >= logical.rank())
    return bad_input("the layout names dim {} of {}", part.dim, logical.to_string());
  if (part.block < 1) return bad_input("a block of {} elements", part.block);
  if (part.block == 1 && part.is_inner)
    return bad_input("dim {} has an inner part without a block", part.dim);
  const auto is_same_half = [&](const Layout::Part& other) {
    return other.dim == part.dim && other.is_inner == part.is_inner;
  };
  if (std::ranges::count_if(layout.parts, is_same_half) > 1)
    return bad_input("the layout names dim {} twice", part.dim);
  if (part.block == 1) return {};
  const Layout::Part other = {.dim = part.dim, .block = part.block, .is_inner = !part.is_inner};
  if (std::ranges::find(layout.parts, other) == layout.parts.end())
    return bad_input("dim {} is in blocks of {}, but one half of the block is missing", part.dim,
                     part.block);
  if (!logical.dim(part.dim).divisible_by(part.block))
    return bad_input("blocks of {} do not divide dim {} of {}", part.block, part.dim,
                     logical.to_string());
  return {};
}

}  // namespace

Status check(const Layout& layout, Type logical) {
  for (const Layout::Part& part : layout.parts) HONE_TRY(check_part(layout, part, logical));
  for (int dim = 0; dim < logical.rank(); ++dim)
    if (!std::ranges::count(layout.parts, dim, &Layout::Part::dim))
      return bad_input("the layout leaves out dim {} of {}", dim, logical.to_string());
  if (layout.parts.size() > static_cast<size_t>(kMaxRank))
    return over_limit("the layout gives {} dims, more than {}", layout.parts.size(), kMaxRank);
  return {};
}

Type stored_type(const Layout& layout, Type logical) {
  Dims dims;
  for (const Layout::Part& part : layout.parts)
    dims.push_back(part.is_inner ? Dim(part.block) : floordiv(logical.dim(part.dim), part.block));
  return logical.with_dims(dims);
}

std::vector<IndexExpr> stored_index(const Layout& layout, std::span<const IndexExpr> logical) {
  std::vector<IndexExpr> index;
  for (const Layout::Part& part : layout.parts) {
    const IndexExpr& at = logical[static_cast<size_t>(part.dim)];
    index.push_back(part.is_inner ? mod(at, part.block) : floordiv(at, part.block));
  }
  return index;
}

// ---- Text ---------------------------------------------------------------------------------------

std::string print(const Layout& layout) {
  std::vector<std::string> parts;
  for (const Layout::Part& part : layout.parts)
    parts.push_back(part.block == 1
                        ? fmt::format("{}", part.dim)
                        : fmt::format("{}{}{}", part.dim, part.is_inner ? '%' : '/', part.block));
  return fmt::format("[{}]", join(parts, ", "));
}

namespace {

Result<Layout::Part> parse_part(std::string_view text) {
  const size_t sign = text.find_first_of("/%");
  const int64_t dim = HONE_TRY(parse_int(trim(text.substr(0, sign))));
  if (dim < 0 || dim >= kMaxRank) return bad_input("dim {} is outside of 0..{}", dim, kMaxRank - 1);
  Layout::Part part = {.dim = static_cast<int>(dim)};
  if (sign == std::string_view::npos) return part;
  part.block = HONE_TRY(parse_int(trim(text.substr(sign + 1))));
  part.is_inner = text[sign] == '%';
  if (part.block < 2) return bad_input("a block of {} elements, not of 2 or more", part.block);
  return part;
}

}  // namespace

Result<Layout> parse_layout(std::string_view text) {
  std::string_view list = trim(text);
  if (!consume_prefix(list, "[") || !list.ends_with(']'))
    return bad_input("a layout is a list like [0, 1/16, 1%16], not '{}'", excerpt(text));
  list.remove_suffix(1);
  Layout layout;
  if (trim(list).empty()) return layout;
  for (std::string_view part : split(list, ',')) {
    if (layout.parts.size() == static_cast<size_t>(kMaxRank))
      return over_limit("a layout of more than {} dims", kMaxRank);
    Result<Layout::Part> parsed = parse_part(part);
    if (!parsed.ok())
      return std::move(parsed).error().within(fmt::format("layout part '{}'", excerpt(trim(part))));
    layout.parts.push_back(*parsed);
  }
  return layout;
}

}  // namespace hone
