#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "kernel/facts.h"
#include "kernel/prepared.h"

// The definition of an algorithm: a row of algorithms.def, and an AlgorithmDef in
// algorithms/NAME.cc. Its builder is build_NAME() of program/build/NAME.cc, its price is in cost.

namespace hone {

// A body on a target: what schedules are legal for.
struct ScheduleSite {
  const KernelBody& body;
  const KernelFacts& facts;
  const Target& target;

  int parallel() const { return facts.space.parallel; }
  int dims() const { return static_cast<int>(facts.space.dims.size()); }
  // The largest that symbols allow.
  int64_t extent(int dim) const {
    return facts.space.dims[static_cast<size_t>(dim)].extent.range().high;
  }
  bool is_open(int dim) const {  // its size is a symbol
    return !facts.space.dims[static_cast<size_t>(dim)].extent.is_static();
  }
  bool is_stage() const { return !body.window.empty(); }
};

using Schedules = std::vector<Schedule>;
// Gets one schedule after another; false: enough.
using ScheduleVisit = std::function<bool(const Schedule&)>;

// One decision of an algorithm: the values of one field, or of fields that go together. A value may
// depend on the decisions before it. Together the domains of an algorithm's decisions hold every
// schedule that its check accepts, apart from other spellings of the same loops. Tiles stand in the
// order of their dims, and no block is larger than its dim.
class Decision {
 public:
  virtual ~Decision() = default;
  // The field; of fields that go together the first: "order".
  virtual std::string_view name() const = 0;
  // How many values there are at most; infinity: nobody counts them.
  virtual double bound(const ScheduleSite& site) const = 0;
  // Visits the schedule with each value; false: the visitor had enough.
  virtual bool each(const ScheduleSite& site, const Schedule& so_far,
                    const ScheduleVisit& visit) const = 0;
  virtual void draw(const ScheduleSite& site, Schedule& so_far, Rng& rng) const = 0;
  // The schedule with values a step away; steps lead from each value to each other one and back.
  virtual Schedules near(const ScheduleSite& site, const Schedule& schedule) const = 0;
  // The schedule with simpler values, the simplest first; none: it has the simplest.
  virtual Schedules simpler(const ScheduleSite& site, const Schedule& schedule) const = 0;
  // Gives `to` the value of `from`, where that has one.
  virtual void copy(const Schedule& from, Schedule& to, Rng& rng) const = 0;
};

class AlgorithmDef {
 public:
  virtual ~AlgorithmDef() = default;
  // Says whether the schedule, of this algorithm, can be carried out, and why not.
  virtual Status check(const ScheduleSite& site, const Schedule& schedule) const = 0;
  // True if it is worth to look for schedules that can.
  virtual bool takes(const ScheduleSite& site) const = 0;
  virtual std::vector<const Decision*> decisions() const = 0;
  // With the simplest value of each decision. It may not fit the body.
  virtual Schedule simplest(const ScheduleSite& site) const = 0;
  // How often it is drawn, compared with others.
  virtual uint64_t weight() const { return 1; }
  // True if its kernels are for blocks of a GPU's threads.
  virtual bool is_for_gpu() const { return false; }
  // True if stages of chains can be carried out by it.
  virtual bool is_for_stages() const { return false; }
  // prepared_input(): none if the kernel reads all parameters as they lie.
  virtual std::optional<PreparedInput> prepared(const KernelBody& /*body*/,
                                                const Schedule& /*schedule*/) const {
    return std::nullopt;
  }
  // Tells whether it computes fewer products than the body's contraction has, which no stage can.
  virtual bool saves_products() const { return false; }
  // The products that the kernel computes, as a part of those of the body's contraction.
  virtual double share_of_products(const ScheduleSite& /*site*/,
                                   const Schedule& /*schedule*/) const {
    return 1;
  }
  // The product by which the kernel computes that of the body, if it is another one.
  struct OwnProduct {
    KernelBody body;
    Schedule schedule;
  };
  virtual std::optional<OwnProduct> product(const KernelFacts& /*facts*/,
                                            const Schedule& /*schedule*/) const {
    return std::nullopt;
  }
  // The facts of a body that its price needs, found once for all schedules. The algorithm alone
  // knows the type. Null: nothing, or the algorithm is not for the body.
  virtual std::shared_ptr<const void> roles(const KernelFacts& /*facts*/) const { return nullptr; }
};

const AlgorithmDef& def_of(Algorithm algorithm);

}  // namespace hone
