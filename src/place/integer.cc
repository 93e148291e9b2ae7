#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "place/solver_program.h"

// The least load as an integer program, for CBC of COIN-OR, which is a program of its own.
//
// x_U_D is 1 if unit U is on device D. A tensor keeps the port of its maker's device busy (o_T_D)
// if one of its users is elsewhere, and that of each other device that has users of it (i_T_D).
// Both are as small as x allows, since a load only grows by them. t is at least the load of each
// device.

namespace hone {
namespace {

constexpr size_t kMostColumns = 20'000;
constexpr double kWholeWork = 1000;  // of the program's unit: its tolerances are absolute

class IntegerProgram {
 public:
  explicit IntegerProgram(PlaceRun& run)
      : run_(run), devices_(run.judge().devices()), units_(run.units().units()) {
    double work = 0;
    for (const PlaceUnit& unit : units_) {
      double least = kCannotRun;
      for (const uint32_t d : unit.devices) least = std::min(least, unit.seconds[d]);
      work += least;
    }
    scale_ = work > 0 ? kWholeWork / work : 1;
    find_uses();
  }

  size_t columns() const {
    size_t count = 1;
    for (const PlaceUnit& unit : units_) count += unit.devices.size();
    return count + 2 * uses_.size() * devices_.size();
  }

  // In the form that CPLEX made usual.
  std::string text() const {
    std::string out = "Minimize\n obj: t\nSubject To\n";
    for (size_t u = 0; u < units_.size(); ++u) out += one_device(u);
    for (const Use& use : uses_)
      for (size_t d = 0; d < devices_.size(); ++d) out += crossings(use, d);
    for (size_t d = 0; d < devices_.size(); ++d) {
      out += load(d);
      out += memory(d);
    }
    out += "Bounds\n t >= 0\n";
    for (const Use& use : uses_)
      for (size_t d = 0; d < devices_.size(); ++d)
        out += fmt::format(" 0 <= i_{0}_{1} <= 1\n 0 <= o_{0}_{1} <= 1\n", use.tensor, d);
    out += "Binaries\n";
    for (size_t u = 0; u < units_.size(); ++u)
      for (const uint32_t d : allowed(u)) out += fmt::format(" x_{}_{}\n", u, d);
    return out + "End\n";
  }

  // The device of each unit; none, if the solution does not say it.
  std::optional<std::vector<uint32_t>> read(std::string_view solution) const {
    std::vector<uint32_t> device(units_.size(), UINT32_MAX);
    for (const SolvedValue& one : solved_values(solution)) {
      if (!one.name.starts_with("x_") || one.value < 0.5) continue;
      const size_t between = one.name.find('_', 2);
      if (between == one.name.npos) continue;
      const Result<int64_t> unit = parse_int(one.name.substr(2, between - 2)),
                            at = parse_int(one.name.substr(between + 1));
      if (!unit.ok() || !at.ok()) continue;
      if (std::cmp_greater_equal(*unit, device.size()) || *unit < 0) return std::nullopt;
      device[static_cast<size_t>(*unit)] = static_cast<uint32_t>(*at);
    }
    for (size_t u = 0; u < device.size(); ++u)
      if (!std::ranges::binary_search(units_[u].devices, device[u])) return std::nullopt;
    return device;
  }

 private:
  struct Use {
    uint32_t tensor, maker;
    std::set<uint32_t> users;  // units other than the maker
  };

  void find_uses() {
    const PlaceProblem& problem = run_.problem();
    for (uint32_t t = 0; t < problem.tensors.size(); ++t) {
      if (problem.tensors[t].bytes <= 0) continue;
      Use use = {t, run_.units().of(problem.tensors[t].maker), {}};
      for (const uint32_t user : problem.tensors[t].users) use.users.insert(run_.units().of(user));
      use.users.erase(use.maker);
      if (!use.users.empty()) uses_.push_back(std::move(use));
    }
  }

  // If all devices are alike, the first unit may be on any of them: so it is on one.
  std::vector<uint32_t> allowed(size_t unit) const {
    const std::vector<uint32_t>& all = units_[unit].devices;
    const bool are_alike =
        all.size() == devices_.size() &&
        std::ranges::all_of(devices_, [&](const PlaceDevice& one) { return one == devices_[0]; });
    if (unit != 0 || !are_alike || has_pins()) return all;
    return {all[0]};
  }
  bool has_pins() const {
    return std::ranges::any_of(
        units_, [&](const PlaceUnit& unit) { return unit.devices.size() != devices_.size(); });
  }

  bool is_allowed(size_t unit, size_t device) const {
    return std::ranges::binary_search(allowed(unit), static_cast<uint32_t>(device));
  }

  std::string one_device(size_t u) const {
    std::string row;
    for (const uint32_t d : allowed(u)) row += fmt::format(" + x_{}_{}", u, d);
    return row + " = 1\n";
  }

  // " + 1 x_3_0", if the unit may be there.
  std::string term(std::string_view sign, size_t unit, size_t device) const {
    return is_allowed(unit, device) ? fmt::format(" {} x_{}_{}", sign, unit, device) : "";
  }

  std::string crossings(const Use& use, size_t d) const {
    std::string rows;
    for (const uint32_t user : use.users) {
      // i >= x of the user - x of the maker; o the other way about.
      rows += fmt::format(" i_{}_{}{}{} >= 0\n", use.tensor, d, term("-", user, d),
                          term("+", use.maker, d));
      rows += fmt::format(" o_{}_{}{}{} >= 0\n", use.tensor, d, term("-", use.maker, d),
                          term("+", user, d));
    }
    return rows;
  }

  std::string load(size_t d) const {
    std::string row = " t";
    for (size_t u = 0; u < units_.size(); ++u)
      if (is_allowed(u, d) && units_[u].seconds[d] > 0)
        row += fmt::format("\n - {} x_{}_{}", format_double(units_[u].seconds[d] * scale_), u, d);
    for (const Use& use : uses_) {
      const double moved = run_.problem().tensors[use.tensor].bytes * devices_[d].port * scale_;
      if (moved > 0)
        row +=
            fmt::format("\n - {0} i_{1}_{2} - {0} o_{1}_{2}", format_double(moved), use.tensor, d);
    }
    return row + " >= 0\n";
  }

  // In memories of the device.
  std::string memory(size_t d) const {
    const auto whole = static_cast<double>(std::max<int64_t>(devices_[d].memory, 1));
    std::string row;
    for (size_t u = 0; u < units_.size(); ++u)
      if (is_allowed(u, d) && units_[u].held > 0)
        row += fmt::format("\n + {} x_{}_{}",
                           format_double(static_cast<double>(units_[u].held) / whole), u, d);
    return row.empty() ? "" : row + " <= 1\n";
  }

  PlaceRun& run_;
  const std::vector<PlaceDevice>& devices_;
  const std::vector<PlaceUnit>& units_;
  std::vector<Use> uses_;
  double scale_ = 1;
};

}  // namespace

void place_integer(PlaceRun& run) {
  if (run.options().solver.program.empty()) return run.note("skipped: there is no program 'cbc'");
  const IntegerProgram program(run);
  if (program.columns() > kMostColumns)
    return run.note(
        fmt::format("skipped: {} variables are more than {}", program.columns(), kMostColumns));
  const Result<std::string> text = solved_by_cbc(run, program.text());
  const std::optional<std::vector<uint32_t>> device =
      text.ok() ? program.read(*text) : std::nullopt;
  if (!device) return run.note("it found nothing in time");
  run.offer(*device);
  run.note(text->starts_with("Optimal") ? "exact: no load is less, if memory holds what stays"
                                        : "not exact: stopped in time");
}

}  // namespace hone
