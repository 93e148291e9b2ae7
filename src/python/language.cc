#include "python/language.h"

#include <pybind11/stl.h>

#include <optional>

#include "language/conversation.h"
#include "language/embedding_model.h"
#include "language/generation.h"
#include "language/speculation.h"
#include "python/error.h"
#include "python/job.h"
#include "python/request.h"

namespace hone::python {

namespace py = pybind11;

namespace {

// A language model as Python has it. One generation at a time reads it; a newer one ends the
// others.
class PyLanguageModel : public std::enable_shared_from_this<PyLanguageModel> {
 public:
  explicit PyLanguageModel(std::unique_ptr<LanguageModel> model) : model_(std::move(model)) {}

  LanguageModel& model() { return *model_; }
  const Tokenizer& tokenizer() const { return model_->tokenizer(); }
  // The number of a generation that begins now.
  int64_t begin() { return ++newest_; }
  Status check(int64_t number) const {
    if (number == newest_) return {};
    return usage_error("another text was begun; this one cannot go on")
        .with_hint("use up one text before the next one");
  }
  // One thread at a time is in the model.
  Status enter() {
    if (std::exchange(is_busy_, true))
      return usage_error("another thread is reading the model").with_hint("load it once more");
    return {};
  }
  void leave() { is_busy_ = false; }

 private:
  const std::unique_ptr<LanguageModel> model_;
  int64_t newest_ = 0;  // guarded by the GIL, as is the other
  bool is_busy_ = false;
};

class Busy {
 public:
  explicit Busy(PyLanguageModel& model) : model_(model) { take(model.enter()); }
  ~Busy() { model_.leave(); }
  Busy(const Busy&) = delete;

 private:
  PyLanguageModel& model_;
};

// A text while it comes.
class PyGeneration {
 public:
  PyGeneration(std::shared_ptr<PyLanguageModel> model, std::vector<TokenId> prompt,
               GenerationOptions options, bool looks_up)
      : model_(std::move(model)),
        prompt_(std::move(prompt)),
        options_(std::move(options)),
        number_(model_->begin()) {
    if (looks_up) options_.drafter = &lookup_;
    options_.on_text = [this](std::string_view text) { piece_ += text; };
  }

  // Some text; none: it has ended.
  py::object next() {
    take(model_->check(number_));
    const Busy busy(*model_);
    std::optional<Result<bool>> more;
    run_beside(py::none(), [&](const Face& face) { more = read_on(face); });
    if (!take(*std::move(more)) && piece_.empty()) return py::none();
    return py::bytes(std::exchange(piece_, ""));
  }

  py::dict made() const {
    static const Generation kNone;
    const Generation& made = maker_ ? maker_->made() : kNone;
    py::dict said;
    said["text"] = py::bytes(made.text);
    said["tokens"] = made.tokens;
    said["log_probabilities"] = made.log_probabilities;
    said["end"] = std::string(name(made.end));
    said["prompt_tokens"] = made.prompt_tokens;
    said["reused_tokens"] = made.reused_tokens;
    said["dropped_tokens"] = made.dropped_tokens;
    said["prompt_seconds"] = made.prompt_seconds;
    said["decode_seconds"] = made.decode_seconds;
    return said;
  }

 private:
  // Up to some text, or the end.
  Result<bool> read_on(const Face& face) {
    LanguageModel& model = model_->model();
    Face known = model.face();
    known.cancel = face.cancel;
    model.set_face(known);
    Result<bool> more = steps();
    known.cancel = nullptr;
    model.set_face(known);
    return more;
  }
  Result<bool> steps() {
    if (!maker_) maker_ = HONE_TRY(TextMaker::begin(model_->model(), prompt_, options_));
    while (piece_.empty())
      if (!HONE_TRY(maker_->step())) return false;
    return true;
  }

  const std::shared_ptr<PyLanguageModel> model_;
  const std::vector<TokenId> prompt_;
  GenerationOptions options_;
  LookupDrafter lookup_;
  const int64_t number_;
  std::optional<TextMaker> maker_;
  std::string piece_;
};

quantize::Precision weights_named(const std::string& name) {
  const std::optional<quantize::Precision> level = quantize::precision_of(name);
  if (level != quantize::Precision::f32 && level != quantize::Precision::w8 &&
      level != quantize::Precision::w4)
    take(Status(usage_error("to is '{}', not w8 or w4", name)));
  return *level;
}

std::shared_ptr<PyLanguageModel> load_language(const py::dict& given, int64_t context,
                                               const std::string& cache_type,
                                               const std::string& weights, py::handle hears) {
  const auto options = plain_options_of(given);
  const std::optional<CacheType> cache = cache_type_of(cache_type);
  if (!cache) take(Status(usage_error("cache_type is '{}', not f32, f16 or q8", cache_type)));
  const quantize::Precision level = weights_named(weights);
  const std::string path = given["source"].cast<std::string>();
  std::optional<Result<std::unique_ptr<LanguageModel>>> model;
  run_beside(hears, [&](const Face& face) {
    model = [&]() -> Result<std::unique_ptr<LanguageModel>> {
      LanguageSource source = HONE_TRY(read_language(path));
      constexpr int64_t kUsual = 4096;
      const int64_t room = context > 0 ? context : std::min(kUsual, source.config.context);
      auto made = HONE_TRY(LanguageModel::make(
          std::move(source),
          {.native = HONE_TRY(options(face)), .context = room, .cache = *cache, .weights = level},
          face));
      HONE_TRY(made->prepare(2));
      made->set_face({});
      return made;
    }();
  });
  return std::make_shared<PyLanguageModel>(take(*std::move(model)));
}

std::shared_ptr<EmbeddingModel> load_embedding(const py::dict& given, const py::dict& own,
                                               py::handle hears) {
  const auto options = plain_options_of(given);
  const std::string path = given["source"].cast<std::string>();
  EmbeddingModel::Options chosen = {.drops_end = own["drop_end"].cast<bool>(),
                                    .weights = weights_named(own["to"].cast<std::string>())};
  if (!own["normalized"].is_none()) chosen.is_normalized = own["normalized"].cast<bool>();
  if (!own["pooling"].is_none()) {
    chosen.pooling = pooling_of(own["pooling"].cast<std::string>());
    if (!chosen.pooling) take(Status(usage_error("pooling is mean, cls or last")));
  }
  std::optional<Result<std::unique_ptr<EmbeddingModel>>> model;
  run_beside(hears, [&](const Face& face) {
    model = [&]() -> Result<std::unique_ptr<EmbeddingModel>> {
      EmbeddingSource source = HONE_TRY(read_embedding(path));
      chosen.native = HONE_TRY(options(face));
      auto made = HONE_TRY(EmbeddingModel::make(std::move(source), std::move(chosen), face));
      made->set_face({});
      return made;
    }();
  });
  return take(*std::move(model));
}

std::vector<std::vector<float>> embed_all(EmbeddingModel& model,
                                          const std::vector<std::string>& texts) {
  std::optional<Result<std::vector<std::vector<float>>>> all;
  run_beside(py::none(), [&](const Face& face) {
    model.set_face(face);
    all = [&]() -> Result<std::vector<std::vector<float>>> {
      std::vector<std::vector<float>> vectors;
      for (const std::string& text : texts) vectors.push_back(HONE_TRY(model.embed(text)));
      return vectors;
    }();
    model.set_face({});
  });
  return take(*std::move(all));
}

SamplingOptions sampling_from(const py::dict& given) {
  SamplingOptions options;
  options.temperature = given["temperature"].cast<double>();
  options.top_k = given["top_k"].cast<int64_t>();
  options.top_p = given["top_p"].cast<double>();
  options.min_p = given["min_p"].cast<double>();
  options.repeat_penalty = given["repeat_penalty"].cast<double>();
  options.seed = given["seed"].cast<uint64_t>();
  return options;
}

GenerationOptions options_from(const py::dict& given) {
  GenerationOptions options;
  options.max_tokens = given["max_tokens"].cast<int64_t>();
  options.sampling = sampling_from(given);
  options.drops_start = given["drop_start"].cast<bool>();
  options.stops = given["stop"].cast<std::vector<std::string>>();
  return options;
}

// Several texts at once, and nothing until all are there.
std::vector<py::bytes> all_texts(PyLanguageModel& it,
                                 const std::vector<std::vector<TokenId>>& prompts,
                                 const py::dict& given, bool is_apart) {
  GenerationOptions options = options_from(given);
  LookupDrafter lookup;
  if (given["lookup"].cast<bool>()) options.drafter = &lookup;
  options.is_apart = is_apart;
  const Busy busy(it);
  (void)it.begin();
  std::optional<Result<std::vector<Generation>>> made;
  run_beside(py::none(), [&](const Face& face) {
    Face known = it.model().face();
    known.cancel = face.cancel;
    it.model().set_face(known);
    made = generate_all(it.model(), prompts, options);
    known.cancel = nullptr;
    it.model().set_face(known);
  });
  std::vector<py::bytes> texts;
  for (const Generation& one : take(*std::move(made))) texts.emplace_back(one.text);
  return texts;
}

std::shared_ptr<PyGeneration> begin_text(const std::shared_ptr<PyLanguageModel>& model,
                                         std::vector<TokenId> prompt, const py::dict& given) {
  GenerationOptions options = options_from(given);
  return std::make_shared<PyGeneration>(model, std::move(prompt), std::move(options),
                                        given["lookup"].cast<bool>());
}

}  // namespace

void define_language(py::module_& module) {
  py::class_<PyGeneration, std::shared_ptr<PyGeneration>>(module, "LanguageText",
                                                          py::module_local())
      .def("next", &PyGeneration::next)
      .def("made", &PyGeneration::made);
  py::class_<PyLanguageModel, std::shared_ptr<PyLanguageModel>>(module, "LanguageCore",
                                                                py::module_local())
      .def_property_readonly("context", [](PyLanguageModel& it) { return it.model().context(); })
      .def_property_readonly("memory", [](PyLanguageModel& it) { return it.model().memory(); })
      .def(
          "tokenize",
          [](const PyLanguageModel& it, const std::string& text, bool begins, bool control) {
            const auto how = control ? Tokenizer::Control::is_token : Tokenizer::Control::is_text;
            return begins ? it.tokenizer().prompt(text, how) : it.tokenizer().encode(text, how);
          },
          py::arg("text"), py::arg("begins"), py::arg("control"))
      .def(
          "detokenize",
          [](const PyLanguageModel& it, const std::vector<TokenId>& tokens) {
            return py::bytes(it.tokenizer().decode(tokens));
          },
          py::arg("tokens"))
      .def(
          "conversation",
          [](const PyLanguageModel& it, const std::string& messages, const std::string& variables) {
            return take(
                take(Conversation::make(it.tokenizer())).tokens_of_json(messages, variables));
          },
          py::arg("messages"), py::arg("variables"))
      .def(
          "begin",
          [](PyLanguageModel& it, std::vector<TokenId> prompt, const py::dict& options) {
            return begin_text(it.shared_from_this(), std::move(prompt), options);
          },
          py::arg("prompt"), py::arg("options"))
      .def("all_texts", &all_texts, py::arg("prompts"), py::arg("options"), py::arg("apart"));
  py::class_<EmbeddingModel, std::shared_ptr<EmbeddingModel>>(module, "EmbeddingCore",
                                                              py::module_local())
      .def_property_readonly("width", [](EmbeddingModel& it) { return it.config().width; })
      .def_property_readonly("context", [](EmbeddingModel& it) { return it.config().context; })
      .def("embed", &embed_all, py::arg("texts"));
  module.def("load_embedding", &load_embedding, py::arg("given"), py::arg("own"), py::arg("hears"));
  module.def("load_language", &load_language, py::arg("given"), py::arg("context"),
             py::arg("cache_type"), py::arg("weights"), py::arg("hears"));
}

}  // namespace hone::python
