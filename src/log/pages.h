#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/database.h"

// The b-trees of a database file, read from its pages without SQLite, which gives up a tree at the
// first page that it cannot read. Each number of the file is doubted: what does not fit is absent.
// The format is https://sqlite.org/fileformat2.html; names of sections there stand in pages.cc.

namespace hone::sqlite {

// An entry of a table or of an index, where it stands.
struct Cell {
  uint32_t page = 0;
  uint32_t at = 0;  // of its payload's length, in the page
  int64_t id = 0;   // of the row; 0 in an index, where it is the last value
};

// The rest of one b-tree.
struct Tree {
  bool is_table = false;
  std::vector<Cell> cells = {};
  bool is_whole = false;  // no page of it is missing or damaged, as far as pages tell
};

class PageFile {
 public:
  // Reads the file's bytes, which live longer. The first page says how long all of them are.
  static Result<PageFile> of(std::string_view bytes);

  uint32_t pages() const { return pages_; }

  // The entries below a root. Pages that it comes by are marked; one that is marked already is not
  // a part of it.
  Tree tree(uint32_t root, std::vector<bool>& is_marked) const;
  // Marks the pages that the file says are free.
  void mark_free(std::vector<bool>& is_marked) const;
  // The entries of a page that looks like a leaf of a table.
  std::vector<Cell> table_leaf(uint32_t page) const;

  // The values of an entry; none if it is damaged. Texts and bytes refer to `payload`.
  std::vector<Value> values(const Cell& cell, std::string& payload);

 private:
  PageFile(std::string_view bytes, size_t page_bytes, size_t usable);

  struct Node;
  std::optional<Node> node(uint32_t page) const;
  std::string_view content(uint32_t page) const;
  bool add_cells(const Node& node, uint32_t page, std::vector<Cell>& cells,
                 std::vector<uint32_t>& children) const;
  bool read_payload(const Cell& cell, std::string& payload);

  std::string_view bytes_;
  size_t page_bytes_, usable_;  // usable_: without the reserved end of each page
  uint32_t pages_;
  // Pages of payloads that may still be read: entries of a file made on purpose may all say that
  // they go on in the same pages.
  uint64_t budget_;
};

}  // namespace hone::sqlite
