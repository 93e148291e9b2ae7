#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "learn/lift_weights.h"
#include "learn/trainer.h"

// Small networks as text, for `hone train`: one statement a line, # begins a comment.
//
//   data digits.npz           # arrays with a row for each sample
//   input image
//   target label
//   loss cross-entropy
//   layer linear 64
//   layer relu
//   layer linear 10
//   optimizer adam
//   epochs 8
//
// Or the network is a model that exists: "model small.hone" stands for the layers.

namespace hone {

inline constexpr int64_t kMaxDeclaration = int64_t{1} << 20;  // bytes of text

struct DeclaredLayer {
  std::string_view kind;        // a name of layer_kinds()
  std::vector<double> numbers;  // as many as the kind takes
  int64_t line = 0;             // of the text, from 1 on
};
struct Declaration {
  std::string data;        // paths as they stand in the text
  std::string validation;  // empty: none
  std::string input;       // names of arrays
  std::string target;
  std::string loss = "mse";
  std::vector<DeclaredLayer> layers = {};
  std::string model;            // a path, in the place of layers
  std::optional<Lifted> given;  // that model, by given_network()
  std::string optimizer = "adam";
  double rate = 0;  // 0: the optimizer's own
  TrainingOptions training = {};
  std::map<std::string_view, int64_t> lines = {};  // of the statements that are there
};

// Every error says its line.
Result<Declaration> parse_declaration(std::string_view text);

// The model of `model`: it has one input, and its first output is that of the layers. Weights of
// few bits train as f32, rounded where they are read.
Result<Lifted> given_network(const Graph& model);
// The same model with other weights, which have as few bits as before.
Result<Graph> trained_network(const Lifted& given, std::span<const NamedTensor> weights);

// True if the arrays of the file, with a row for each sample, are what the layers and the loss
// take, and labels are classes of the last layer. An error says the line.
Status check_samples(const Declaration& declaration, const Batch& rows, std::string_view file);

// The output of the layers for the input. The first call's declaration outlives the network.
Value declared_output(const Declaration& declaration, Network& net);
// The loss; of cross-entropy the share of right answers, too.
Objective declared_objective(const Declaration& declaration, Network& net);

}  // namespace hone
