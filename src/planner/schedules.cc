#include "planner/schedules.h"

#include <map>
#include <optional>
#include <unordered_set>

#include "planner/chain_schedules.h"
#include "planner/few_plans.h"
#include "planner/field_chooser.h"
#include "planner/steps.h"

namespace hone {
namespace {

// Starts from the simplest schedule and changes one field after another to what costs least.
class KernelChooser : public FieldChooser {
 public:
  using FieldChooser::FieldChooser;

  PricedSchedule run() {
    const Schedule nest = plain_nest(space_.parallel);
    consider(nest);
    if (on_.schedules) improve(nest);
    consider({});
    HONE_CHECK(best_, "no schedule fits a kernel of {} nodes", body_.graph.node_count());
    unroll_fields(cheapest_);
    return {*best_, least_};
  }

  // From a schedule for other threads (ScheduleChooser::divided).
  Schedule divided(Schedule schedule) {
    if (threads_ < 2) schedule.threads = 0;
    consider(schedule);
    if (!best_) {  // its price is not a number
      HONE_CHECK(check_schedule(body_, facts_, schedule, target_).ok(),
                 "a schedule for other threads does not fit its kernel");
      best_ = schedule;
    }
    try_threads(true);
    if (schedule.if_is<GemmFields>() == nullptr) return *best_;
    for (int round = 0; round < rounds(); ++round) {
      for (int dim = 0; dim < space_.parallel; ++dim)
        if (on_.cache_blocks && extent(dim) > 1 && !site_.is_open(dim)) try_block(dim);
      try_threads(true);
      try_divided_blocks();
    }
    return *best_;
  }

 private:
  void improve(const Schedule& nest) {
    if (target_.gpu) return try_gpu_schedules(cheapest_, nest);
    if (best_) improve_nest(cheapest_);
    try_products(cheapest_, nest);
  }
};

}  // namespace

ScheduleChooser::ScheduleChooser(const Target& target, const Cost& cost, int64_t threads,
                                 const PlannerOptions& options)
    : target_(target),
      cost_(cost),
      threads_(threads),
      options_(options),
      store_(options.known == nullptr ? own_ : *options.known),
      known_((cost.version().empty() ? unversioned_ : store_).known(cost.version(), threads)) {
  Heuristics of_schedules = options.heuristics;
  for (bool Heuristics::* flag : structure_heuristics()) of_schedules.*flag = true;
  store_.serve(target, left_out(of_schedules));
  if (cost.baseline() == nullptr) return;
  PlannerOptions shared = options;
  shared.known = &store_;
  usual_ = std::make_unique<ScheduleChooser>(target, *cost.baseline(), threads, shared);
}

Result<const PricedSchedule*> ScheduleChooser::choose(const KernelBody& body) {
  return choose(store_.facts(kernel_hash(body), [&] { return body; }));
}

Result<const PricedSchedule*> ScheduleChooser::choose(
    const std::shared_ptr<const KernelFacts>& facts) {
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  if (const auto known = known_.chosen.find(facts->hash); known != known_.chosen.end())
    return &known->second;
  PricedSchedule chosen = HONE_TRY(this->chosen(facts));
  if (options_.progress != nullptr) options_.progress->advance();
  return &known_.chosen.emplace(facts->hash, std::move(chosen)).first->second;
}

Result<PricedSchedule> ScheduleChooser::chosen(const std::shared_ptr<const KernelFacts>& facts) {
  const bool is_stage = !facts->body.window.empty();
  const int64_t threads = is_stage ? 1 : threads_;
  const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads);
  using Knows = PricedKernel::Knows;
  if (const Knows knows = price->knows(); usual_ != nullptr && knows != Knows::choices) {
    PricedSchedule usual = *HONE_TRY(usual_->choose(facts));
    if (knows == Knows::price) usual.seconds = price->seconds(usual.schedule);
    return usual;
  }
  std::optional<PricedSchedule> best;
  if (!is_stage) best = HONE_TRY(cheapest_chain(facts, *price, *this));
  // A group with too much work in one nest is not even priced as one, nor a conv in the windows of
  // a pool, which has no register tiles there.
  if (check_work(facts->work).ok() && !(best && is_conv_with_pool(facts->body.graph))) {
    CheapestSchedule cheapest = {facts, target_, *price, threads, heuristics()};
    PricedSchedule alone = KernelChooser(cheapest).run();
    if (!best || alone.seconds <= best->seconds) best = std::move(alone);
  }
  HONE_CHECK(best, "no schedule fits a kernel of {} nodes", facts->body.graph.node_count());
  return *std::move(best);
}

Result<Schedule> ScheduleChooser::divided(const KernelBody& body, const Schedule& schedule) {
  if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
  const std::shared_ptr<const KernelFacts>& facts =
      store_.facts(kernel_hash(body), [&] { return body; });
  const std::unique_ptr<PricedKernel> price = cost_.kernel(facts, threads_);
  CheapestSchedule cheapest = {facts, target_, *price, threads_, heuristics()};
  return KernelChooser(cheapest).divided(schedule);
}

ChooseSchedule planner_schedules(const Target& target, const Cost& cost, KernelStore& store) {
  using Choosers = std::map<int64_t, ScheduleChooser>;  // by threads
  const auto choosers = std::make_shared<Choosers>();
  return [&target, &cost, &store, choosers](const std::shared_ptr<const KernelFacts>& facts,
                                            int64_t threads) -> Result<PricedSchedule> {
    const PlannerOptions options{.known = &store};
    const auto at = choosers->try_emplace(threads, target, cost, threads, options).first;
    return *HONE_TRY(at->second.choose(facts));
  };
}

namespace {

// The usual one, unless another Cost knows a schedule that is surely cheaper.
Result<Schedule> schedule_of(const KernelBody& body, const Choosers& choosers) {
  const Schedule usual = HONE_TRY(choosers.usual.choose(body))->schedule;
  if (choosers.learned == nullptr) return usual;
  const auto& facts = choosers.usual.known().facts(kernel_hash(body), [&] { return body; });
  const Schedule& other = HONE_TRY(choosers.learned->choose(facts))->schedule;
  if (other == usual) return usual;
  const auto priced = choosers.learned->cost().kernel(facts, choosers.usual.threads());
  return priced->is_surely_cheaper(other, usual) ? other : usual;
}

}  // namespace

Status choose_schedules(PlanningFrame& frame) {
  const PlannedGraph& planned = frame.planned();
  const FrameEditor* const edited = frame.if_edited();
  std::unordered_set<uint64_t> shapes;
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    const Step& step = planned.steps[s];
    if (!step.is_kernel || !shapes.insert(step_shape(planned, step)).second) continue;
    const auto body = [&] { return body_of(planned, frame.users(), step); };
    const uint64_t kernel = edited != nullptr ? edited->kernel(s).hash : kernel_hash(body());
    const auto [at, is_new] = frame.whole().schedule.try_emplace(kernel);
    if (is_new) at->second = HONE_TRY(schedule_of(body(), frame.choosers()));
  }
  return {};
}

}  // namespace hone
