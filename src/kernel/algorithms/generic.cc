#include "kernel/algorithms/algorithm.h"

namespace hone {
namespace {

class Generic : public AlgorithmDef {
 public:
  Status check(const ScheduleSite& site, const Schedule& schedule) const override {
    if (site.facts.nodes.size() != 1)
      return unsupported("the generic algorithm takes one op, not {}", site.facts.nodes.size());
    if (schedule != Schedule{}) return bad_input("the generic algorithm has no fields");
    return {};
  }
  bool takes(const ScheduleSite& site) const override { return check(site, {}).ok(); }
  std::vector<const Decision*> decisions() const override { return {}; }
  Schedule simplest(const ScheduleSite&) const override { return {}; }
};

}  // namespace

const AlgorithmDef& algorithm_generic() {
  static const Generic def;
  return def;
}

}  // namespace hone
