#include "cli/inputs.h"

#include "base/text.h"
#include "cli/console.h"
#include "cli/echo.h"
#include "cli/source.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/onnx/tensor_file.h"
#include "ir/summary.h"
#include "zoo/inputs.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace hone::cli {
namespace {

// For who forgot the sign of a file; "" for other values.
std::string file_hint(std::string_view option, std::string_view name, std::string_view value) {
  if (option != "--input") return "";
  if (value.ends_with(".npy") || value.ends_with(".pb"))
    return fmt::format("to read a file, write {}=@{}", excerpt(name), excerpt(value));
  return value.ends_with(".npz") ? fmt::format("to read all inputs: --inputs {}", excerpt(value))
                                 : "";
}

// "x=VALUE" at its first sign.
Result<std::pair<std::string, std::string>> split_pair(std::string_view option,
                                                       const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == 0 || sign == std::string::npos)
    return usage_error("{}: '{}' has not the form NAME=VALUE", option, excerpt(text))
        .with_hint(file_hint(option, "NAME", text));
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

Result<Ints> parse_shape(std::string_view given, std::string_view value) {
  Ints dims;
  if (value.empty()) return dims;  // a scalar
  for (std::string_view part : split(value, 'x')) {
    const Result<int64_t> dim = parse_int(part);
    if (!dim.ok() || *dim < 0 || *dim > kMaxElements)
      return usage_error("--shape {}: '{}' is no dim", excerpt(given), excerpt(part))
          .with_hint("the form is x=1x3x224x224");
    dims.push_back(*dim);
  }
  return dims;
}

constexpr int64_t kRandomBytes = 12;  // of an element on the way: a float and a double

Error too_large(double needed, int64_t limit) {
  return over_limit("this run needs about {}, the machine has {}",
                    format_bytes(static_cast<int64_t>(std::min(needed, 9e18))), format_bytes(limit))
      .with_hint("choose smaller sizes with --dim, --shape or the options of the model");
}

// --dim NAME=N, each checked against its symbol.
Result<Bindings> dim_bindings(const Graph& graph, const std::vector<std::string>& texts) {
  Bindings bindings;
  const std::vector<Symbol> symbols = graph.symbols();
  for (const std::string& text : texts) {
    const auto [name, value] = HONE_TRY(split_pair("--dim", text));
    const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                     [&](const Symbol& one) { return one.name() == name; });
    if (symbol == symbols.end()) {
      std::vector<std::string> known;
      for (const Symbol& one : symbols) known.emplace_back(one.name());
      return usage_error("--dim: the graph has no symbol '{}'", excerpt(name))
          .with_hint(known.empty() ? "all of its dims are numbers"
                                   : fmt::format("it has {}", name_list(known)));
    }
    const Result<int64_t> number = parse_int(value);
    if (!number.ok())
      return usage_error("--dim {}: '{}' is not an integer", excerpt(text), excerpt(value));
    const Status fits = check_binding(*symbol, *number);
    if (!fits.ok()) return usage_error("--dim {}: {}", excerpt(text), fits.error().what());
    if (!bindings.emplace(name, *number).second)
      return usage_error("--dim: '{}' is given twice", name);
  }
  return bindings;
}

class Resolver {
 public:
  Resolver(const Graph& graph, Console& console)
      : graph_(graph), console_(console), given_(graph.inputs().size()), shapes_(given_.size()) {
    for (ValueId v : graph.inputs()) names_.emplace_back(graph.name(v));
  }

  Result<Bindings> bind(const Sizes& sizes) {
    bindings_ = HONE_TRY(dim_bindings(graph_, sizes.dims));
    for (const std::string& text : sizes.shapes) HONE_TRY(add_shape(text));
    return bindings_;
  }

  Result<Bindings> bind_all(const Sizes& sizes) {
    HONE_TRY(bind(sizes));
    HONE_TRY(bind_the_rest());
    return bindings_;
  }

  Result<RunInputs> resolve(const Sizes& sizes, const Arguments& arguments, Engine engine) {
    Bindings chosen = HONE_TRY(bind(sizes));
    if (arguments.given("inputs")) HONE_TRY(add_file(arguments.text("inputs")));
    for (const std::string& text : arguments.list("input")) HONE_TRY(add_input(text));
    HONE_TRY(bind_the_rest());
    const int64_t left = HONE_TRY(memory_left(graph_, bindings_, engine));
    HONE_TRY(fill(arguments.integer("seed"), left));
    return RunInputs{std::move(given_), std::move(bindings_), std::move(chosen), left};
  }

 private:
  Result<size_t> index_of(std::string_view option, std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<size_t>(found - names_.begin());
    std::string hint = did_you_mean(name, names_);
    if (hint.empty())
      hint = names_.empty() ? "it has none" : fmt::format("it has {}", name_list(names_));
    return usage_error("{}: the graph has no input '{}'", option, excerpt(name)).with_hint(hint);
  }

  Type input_type(size_t i) const { return graph_.type(graph_.inputs()[i]); }

  // The dims of input i are these numbers; symbols follow.
  Status match(size_t i, std::span<const int64_t> dims) {
    const Type type = input_type(i);
    Ints shape(dims.begin(), dims.end());
    const auto wrong = [&](std::string_view why) {
      return usage_error("input '{}' is {}, given is [{}]{}", excerpt(names_[i]), type.to_string(),
                         excerpt(join(shape, ", ")), why);
    };
    if (static_cast<int>(dims.size()) != type.rank())
      return wrong(fmt::format(": rank {} instead of {}", dims.size(), type.rank()));
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const Dim wanted = type.dim(static_cast<int>(axis));
      Status fits = match_dim(wanted.bind(bindings_), dims[axis], bindings_);
      if (!fits.ok()) return wrong(fmt::format(": axis {}: {}", axis, fits.error().what()));
    }
    shapes_[i] = std::move(shape);
    return {};
  }

  Status add_shape(const std::string& text) {
    const auto [name, value] = HONE_TRY(split_pair("--shape", text));
    const size_t i = HONE_TRY(index_of("--shape", name));
    return match(i, HONE_TRY(parse_shape(text, value)));
  }

  Status add_tensor(size_t i, Tensor tensor, std::string_view from) {
    if (given_[i]) return usage_error("input '{}' is given twice", excerpt(names_[i]));
    HONE_TRY(match(i, tensor.type().static_dims()));
    const DType wanted = input_type(i).dtype();
    if (tensor.dtype() != wanted) {
      // numpy has no bf16 and no f8; whoever has such an input gives wider reals.
      if (!is_real(wanted) || !is_real(tensor.dtype()))
        return bad_input("input '{}' holds {}, {} holds {}", excerpt(names_[i]), name(wanted), from,
                         name(tensor.dtype()));
      std::vector<double> values(static_cast<size_t>(tensor.elements()));
      tensor.read_reals(0, values);
      tensor = Tensor::from_reals(tensor.type().with_dtype(wanted), values);
      console_.note("{}: rounded to {}", from, name(wanted));
    }
    given_[i] = std::move(tensor);
    return {};
  }

  Status add_input(const std::string& text) {
    const auto [name, value] = HONE_TRY(split_pair("--input", text));
    const size_t i = HONE_TRY(index_of("--input", name));
    if (value.starts_with('@')) {
      const std::string path = value.substr(1);
      return add_tensor(i, HONE_TRY(read_tensor(path)), path);
    }
    Result<Tensor> tensor = parse_literal(value);
    if (!tensor.ok()) {
      Error error = std::move(tensor).error().within(fmt::format("--input {}", excerpt(name)));
      const std::string hint = file_hint("--input", name, value);
      return hint.empty() ? error : std::move(error).with_hint(hint);
    }
    return add_tensor(i, std::move(*tensor), "the literal");
  }

  Status add_file(const std::string& path) {
    for (NamedTensor& member : HONE_TRY(read_npz(path))) {
      const size_t i = HONE_TRY(index_of("--inputs", member.name));
      HONE_TRY(add_tensor(i, std::move(member.tensor), fmt::format("{}:{}", path, member.name)));
    }
    return {};
  }

  // Symbols that nothing has decided take their smallest value.
  Status bind_the_rest() {
    const Bindings all = smallest_bindings(graph_, bindings_);
    std::vector<std::string> chosen;
    for (const auto& [name, dim] : all)
      if (!bindings_.contains(name)) chosen.push_back(fmt::format("{}={}", name, dim.to_string()));
    if (!chosen.empty())
      console_.note("{} (the smallest; --dim or --shape sets others)", join(chosen, ", "));
    bindings_ = all;
    // A size such as N + M says nothing about N until now.
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (const std::optional<Ints> shape = shapes_[i]) HONE_TRY(match(i, *shape));
    return {};
  }

  Status fill(int64_t seed, int64_t memory_left) {
    std::vector<std::string> random;
    for (size_t i = 0; i < given_.size(); ++i) {
      if (given_[i]) continue;
      random.push_back(names_[i]);
      const Type type = HONE_TRY(input_type(i).bind(bindings_));
      const int64_t elements = type.static_elements();
      if (elements > memory_left / kRandomBytes)
        return too_large(static_cast<double>(kRandomBytes) * static_cast<double>(elements),
                         memory_left)
            .within(fmt::format("random input {}", excerpt(names_[i])));
    }
    if (random.empty()) return {};
    std::vector<Tensor> numbers =
        HONE_TRY(random_inputs(graph_, static_cast<uint64_t>(seed), bindings_));
    for (size_t i = 0; i < given_.size(); ++i)
      if (!given_[i]) given_[i] = std::move(numbers[i]);
    console_.note("random {} {}, seed {}", random.size() == 1 ? "input" : "inputs",
                  name_list(random), seed);
    return {};
  }

  const Graph& graph_;
  Console& console_;
  std::vector<std::string> names_;
  std::vector<Tensor> given_;
  std::vector<std::optional<Ints>> shapes_;  // as given
  Bindings bindings_;
};

}  // namespace

Sizes sizes_of(const Arguments& arguments) {
  return {arguments.list("dim"), arguments.list("shape")};
}

// The reference computes in 8 bytes per element. Native code has what it is given and gives as the
// types say.
Result<int64_t> memory_left(const Graph& graph, const Bindings& bindings, Engine engine) {
  const GraphSummary summary = HONE_TRY(summarize(graph, bindings));
  const auto constants = static_cast<double>(summary.constant_bytes);
  double held = constants;
  for (const std::vector<NamedType>* ports : {&summary.inputs, &summary.outputs})
    for (const NamedType& port : *ports) {
      const Type type = HONE_TRY(port.type.bind(bindings));
      held += static_cast<double>(type.static_bytes());
    }
  const double computed = 8.0 * static_cast<double>(summary.peak_elements) + constants;
  const double needed = engine == Engine::native ? held : std::max(held, computed);
  const int64_t limit = memory_limit();
  if (needed > static_cast<double>(limit)) return too_large(needed, limit);
  return limit - static_cast<int64_t>(held);
}

Result<RunInputs> resolve_inputs(const Graph& graph, const Sizes& sizes, const Arguments& arguments,
                                 Engine engine, Console& console) {
  return Resolver(graph, console).resolve(sizes, arguments, engine);
}

Result<Bindings> size_bindings(const Graph& graph, const Sizes& sizes, Console& console) {
  return Resolver(graph, console).bind(sizes);
}

Result<Bindings> all_size_bindings(const Graph& graph, const Sizes& sizes, Console& console) {
  return Resolver(graph, console).bind_all(sizes);
}

Result<OnnxImport> onnx_sizes(const Sizes& sizes) {
  OnnxImport import;
  for (const std::string& text : sizes.dims) {
    const auto [name, value] = HONE_TRY(split_pair("--dim", text));
    const Result<int64_t> number = parse_int(value);
    if (!number.ok() || *number < 0)
      return usage_error("--dim {}: '{}' is no size", excerpt(text), excerpt(value));
    if (!import.dims.emplace(name, *number).second)
      return usage_error("--dim: '{}' is given twice", excerpt(name));
  }
  for (const std::string& text : sizes.shapes) {
    const auto [name, value] = HONE_TRY(split_pair("--shape", text));
    if (!import.shapes.emplace(name, HONE_TRY(parse_shape(text, value))).second)
      return usage_error("--shape: '{}' is given twice", excerpt(name));
  }
  return import;
}

std::string dim_options(const Bindings& sizes) {
  std::vector<std::string> options;
  for (const auto& [name, size] : sizes)
    options.push_back(fmt::format("--dim {}={}", name, size.to_string()));
  return join(options, " ");
}

Result<Tensor> read_tensor(const std::string& path) {
  return path.ends_with(".pb") ? onnx_io::read_tensor_file(path) : read_npy(path);
}

}  // namespace hone::cli
