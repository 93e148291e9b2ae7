#include "python/cost.h"

#include <pybind11/stl.h>

#include <cmath>

#include "cost/analytic.h"
#include "cost/analytic_kernel.h"
#include "kernel/kernel_name.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "python/array.h"
#include "python/error.h"

namespace hone::python {
namespace {

namespace py = pybind11;

// A kernel as a price in Python sees it.
struct PyKernel {
  std::shared_ptr<const KernelFacts> facts;
  std::unique_ptr<AnalyticKernel> analytic;

  std::vector<std::pair<double, bool>> loops() const {
    std::vector<std::pair<double, bool>> all;
    for (const KernelFacts::Loop& loop : facts->loops)
      all.emplace_back(loop.extent, loop.is_result);
    return all;
  }
  std::vector<double> prices(const std::vector<Schedule>& schedules) const {
    std::vector<double> seconds(schedules.size());
    analytic->price(schedules, std::numeric_limits<double>::infinity(), seconds);
    return seconds;
  }
  py::object features(const std::vector<Schedule>& schedules) const {
    const auto rows = static_cast<int64_t>(schedules.size());
    NewArray made =
        new_array(take(Type::make(DType::f32, Dims{rows, static_cast<int64_t>(kFeatures)})));
    std::span all(reinterpret_cast<float*>(made.data), schedules.size() * kFeatures);
    for (const Schedule& schedule : schedules) {
      Features one;
      analytic->describe(schedule, one);
      std::ranges::copy(one.all(), all.begin());
      all = all.subspan(kFeatures);
    }
    return std::move(made.array);
  }
};

class PythonKernel final : public PricedKernel {
 public:
  PythonKernel(Held cost, std::shared_ptr<PyKernel> kernel, int64_t threads)
      : cost_(std::move(cost)), kernel_(std::move(kernel)), threads_(threads) {}

  void price(std::span<const Schedule> schedules, double /*limit*/,
             std::span<double> seconds) override {
    const py::gil_scoped_acquire gil;
    py::list all;
    for (const Schedule& schedule : schedules) all.append(py::cast(schedule));
    const auto prices = cost_->attr("price")(kernel_, all, threads_).cast<std::vector<double>>();
    if (prices.size() != seconds.size())
      raise(
          usage_error("price() returned {} prices of {} schedules", prices.size(), seconds.size()));
    for (size_t i = 0; i < prices.size(); ++i) {
      if (!(prices[i] >= 0)) raise(usage_error("price() returned {}", prices[i]));
      seconds[i] = prices[i];
    }
  }
  std::string_view source(const Schedule& /*schedule*/) override { return "Python"; }

 private:
  const Held cost_;
  const std::shared_ptr<PyKernel> kernel_;
  const int64_t threads_;
};

class PythonCost final : public Cost {
 public:
  PythonCost(Held object, const Target& target)
      : object_(std::move(object)), target_(target), analytic_(target) {}

  std::string version() const override { return ""; }
  std::unique_ptr<PricedKernel> kernel(std::shared_ptr<const KernelFacts> facts,
                                       int64_t threads) const override {
    auto analytic = std::make_unique<AnalyticKernel>(facts, target_, Prices(), threads);
    auto kernel = std::make_shared<PyKernel>(std::move(facts), std::move(analytic));
    return std::make_unique<PythonKernel>(object_, std::move(kernel), threads);
  }
  double copy(double bytes) const override {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(*object_, "copy")) return analytic_.copy(bytes);
    return object_->attr("copy")(bytes).cast<double>();
  }
  double command() const override {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(*object_, "command")) return analytic_.command();
    return object_->attr("command")().cast<double>();
  }

 private:
  const Held object_;
  const Target target_;
  const AnalyticCost analytic_;
};

// A search under way, as one in Python sees it: until look() returns.
struct PyRun {
  SearchRun* run = nullptr;
  Point most = 0;  // that Python has met: points are numbered as they are

  SearchRun& it() const {
    if (run == nullptr) raise(usage_error("the search is over"));
    return *run;
  }
  Point met(Point point) {
    most = std::max(most, point);
    return point;
  }
  std::optional<Point> met(std::optional<Point> point) {
    return point ? std::optional(met(*point)) : point;
  }
  std::vector<Point> met(std::vector<Point> points) {
    for (Point point : points) met(point);
    return points;
  }
  void check(Point point) const {
    if (it(); point > most) raise(usage_error("the search has met no point {}", point));
  }
};

class PythonSearch final : public Search {
 public:
  explicit PythonSearch(Held object) : object_(std::move(object)) {}

 private:
  Status look(SearchRun& run) const override {
    const py::gil_scoped_acquire gil;
    const auto shown = std::make_shared<PyRun>(PyRun{&run});
    struct End {
      PyRun& run;
      ~End() { run.run = nullptr; }
    } const end{*shown};
    object_->attr("look")(shown);
    return {};
  }

  const Held object_;
};

void define_run(py::module_& module) {
  py::class_<PyRun, std::shared_ptr<PyRun>>(module, "SearchRun", py::module_local())
      .def_property_readonly("best", [](PyRun& run) { return run.met(run.it().best()); })
      .def_property_readonly("least", [](const PyRun& run) { return run.it().least(); })
      .def_property_readonly("trials", [](const PyRun& run) { return run.it().trials(); })
      .def_property_readonly("batch", [](const PyRun& run) { return run.it().batch(); })
      .def("price",
           [](const PyRun& run, const std::vector<Point>& points) {
             for (Point point : points) run.check(point);
             SearchRun& it = run.it();
             return without_gil([&] { return it.price(points); });
           })
      .def("cost",
           [](const PyRun& run, Point point) {
             run.check(point);
             return run.it().cost(point);
           })
      .def("draw", [](PyRun& run) { return run.met(run.it().draw()); })
      .def("step",
           [](PyRun& run, Point from) {
             run.check(from);
             return run.met(run.it().space().step(from, run.it().rng()));
           })
      .def("cross",
           [](PyRun& run, Point a, Point b) {
             run.check(a);
             run.check(b);
             return run.met(run.it().space().cross(a, b, run.it().rng()));
           })
      .def("coordinates",
           [](const PyRun& run, Point of) {
             run.check(of);
             return run.it().space().coordinates(of);
           })
      .def(
          "neighbours",
          [](PyRun& run, Point of, size_t coordinate, size_t limit) {
            run.check(of);
            SearchSpace& space = run.it().space();
            if (coordinate >= space.coordinates(of))
              raise(usage_error("coordinate {} of {}", coordinate, space.coordinates(of)));
            return run.met(space.neighbours(of, coordinate, limit, run.it().rng()));
          },
          py::arg("of"), py::arg("coordinate"), py::arg("limit") = 64)
      .def("text", [](const PyRun& run, Point point) {
        run.check(point);
        return run.it().space().text(point);
      });
}

}  // namespace

Held hold(py::handle object) {
  return {new py::object(py::reinterpret_borrow<py::object>(object)), [](const py::object* it) {
            const py::gil_scoped_acquire gil;
            delete it;
          }};
}

std::shared_ptr<const Cost> cost_of(Held object, const Target& target) {
  return std::make_shared<PythonCost>(std::move(object), target);
}

std::shared_ptr<const Search> search_of(Held object) {
  return std::make_shared<PythonSearch>(std::move(object));
}

void define_cost(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", py::module_local())
      .def_property_readonly("algorithm",
                             [](const Schedule& it) { return std::string(name(it.algorithm())); })
      .def_readonly("order", &Schedule::order)
      .def_readonly("threads", &Schedule::threads)
      .def("__str__", [](const Schedule& it) { return print(it); });
  py::class_<PyKernel, std::shared_ptr<PyKernel>>(module, "Kernel", py::module_local())
      .def_property_readonly("name",
                             [](const PyKernel& it) { return kernel_name(it.facts->body.graph); })
      .def_property_readonly("hash", [](const PyKernel& it) { return it.facts->hash; })
      .def_property_readonly("loops", &PyKernel::loops)
      .def("text", [](const PyKernel& it) { return print(it.facts->body); })
      .def("analytic", &PyKernel::prices)
      .def("features", &PyKernel::features);
  py::list names;
  for (const std::string_view name : kFeatureNames) names.append(std::string(name));
  module.attr("FEATURES") = py::tuple(names);
  define_run(module);
}

}  // namespace hone::python
