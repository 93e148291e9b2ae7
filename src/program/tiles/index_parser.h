#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/text_parser.h"
#include "program/tiles/tiles.h"

namespace hone {

// Index expressions of a text of tiles: sums, products and quotients of numbers, symbols and the
// indices that are in scope.
class IndexParser {
 public:
  explicit IndexParser(TextParser& text) : text_(text) {}

  // From now on the name is of this index, until it leaves the scope. False: it is taken.
  bool define(std::string_view name, tile::Index index);
  void leave(std::string_view name);

  Result<Dim> dim();  // an expression without indices
  Result<IndexExpr> expr();

 private:
  Result<IndexExpr> product();
  Result<IndexExpr> atom();
  Result<IndexExpr> quotient(const Token& word);

  TextParser& text_;
  std::unordered_map<std::string_view, tile::Index> names_;
};

}  // namespace hone
