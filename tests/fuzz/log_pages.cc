#include <cstdint>
#include <string_view>
#include <vector>

#include "log/pages.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Whatever a file says, its pages are read without a fault, each once, and values lie within what
// was read.
HONE_FUZZ(log_pages) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  hone::Result<hone::sqlite::PageFile> pages = hone::sqlite::PageFile::of(bytes);
  if (!pages.ok()) return;
  std::vector<bool> is_marked(pages->pages() + size_t{1});
  std::vector<hone::sqlite::Cell> cells;
  const auto add = [&](const std::vector<hone::sqlite::Cell>& more) {
    cells.insert(cells.end(), more.begin(), more.end());
  };
  for (uint32_t root : {0U, 1U, 2U, 3U, UINT32_MAX}) add(pages->tree(root, is_marked).cells);
  pages->mark_free(is_marked);
  for (uint32_t page = 0; page <= pages->pages(); ++page)
    if (!is_marked[page]) add(pages->table_leaf(page));
  for (const hone::sqlite::Cell& cell : cells) {
    std::string payload;
    for (const hone::sqlite::Value& value : pages->values(cell, payload))
      if (const auto* text = std::get_if<std::string_view>(&value))
        HONE_CHECK(
            text->empty() || (text->data() >= payload.data() &&
                              text->data() + text->size() <= payload.data() + payload.size()),
            "a text outside of its row");
  }
}

}  // namespace hone::HONE_FILE
