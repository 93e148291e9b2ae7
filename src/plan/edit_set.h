#pragma once

#include "plan/edit.h"

namespace hone {

template <class List, class Value>
void FrameEditor::set(List PlannedGraph::* list, size_t at, Value value) {
  Value old = (planned_.*list)[at];
  if (old == value) return;
  (planned_.*list)[at] = std::move(value);
  whole_.later([this, list, at, old = std::move(old)] { (planned_.*list)[at] = old; });
}

}  // namespace hone
