#pragma once

#include "base/rng.h"
#include "place/judge.h"

// Problems of placement to train, test and measure on: graphs of some families on drawn Systems.

namespace hone {

enum class PlaceFamily : uint8_t {
  layers,     // each node takes some of the layers before
  branches,   // blocks that divide into branches and join again
  recurrent,  // layers unrolled over time
  training,   // a chain and its way back, with companies
  tree,       // pairs that are joined, to one result
  butterfly,  // each node takes two of the stage before, ever farther apart
};
inline constexpr PlaceFamily kPlaceFamilies[] = {PlaceFamily::layers,    PlaceFamily::branches,
                                                 PlaceFamily::recurrent, PlaceFamily::training,
                                                 PlaceFamily::tree,      PlaceFamily::butterfly};
std::string_view name(PlaceFamily family);

struct DrawnPlace {
  PlaceFamily family = PlaceFamily::layers;
  Shape shape = Shape::star;  // of the links
  int64_t devices = 4;
  int64_t nodes = 100;       // at most
  bool two_kinds = false;    // one device in three is slower
  bool is_tight = false;     // memory holds one and a half times what is there
  double traffic = 0.5;      // the time of a mean message, in mean times of a node
  bool has_fusions = false;  // of nodes with one user: they save a share of what both take
  PlaceGoal goal = PlaceGoal::step;
};

// A problem to learn from, of at most `devices` devices. Held out: of families and Systems that the
// others do not have, with 7 or 8 devices.
DrawnPlace draw_place(int64_t nodes, bool is_held_out, Rng& rng, int64_t devices = 6);
// It has passed check().
PlaceProblem make_place(const DrawnPlace& drawn, Rng& rng);
// A known graph on a drawn System: of its own, it keeps the least times. A larger
// graph is cut: a run of its order, with the tensors inside. Limit: nothing of it fits the System.
Result<PlaceProblem> place_on_drawn(const PlaceProblem& graph, const DrawnPlace& drawn, Rng& rng);

}  // namespace hone
