#pragma once

#include "front/onnx/node.h"

// The transforms that the classifiers and regressors of ai.onnx.ml apply to their scores.

namespace hone::onnx_io {

enum class ScoreTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };

ScoreTransform score_transform(Node& n);  // the attribute post_transform, a word

// Transforms scores [rows, targets]. A single score per row changes by `probit` alone, as in ONNX
// Runtime: the other transforms weigh targets against each other.
Value transformed(Value scores, ScoreTransform transform);

// Results 0 and 1 of a classifier: for each row the label that `chosen` [rows] is the place of, and
// the scores.
void out_classes(Node& n, const Ints& labels, Value chosen, Value scores);
// The labels of a classifier: the attribute `name`, or places of strings.
Ints class_labels(Node& n, std::string_view name);
// [-s, s] or [1 - s, s], for two classes of which one has a score [rows, 1].
enum class OtherClass : uint8_t { negative, complement };
Value with_other_class(Node& n, Value score, OtherClass other, ScoreTransform transform);

// Operand 0 as rows of reals: [features] is one row. Doubles stay, other numbers become floats.
Value real_rows(Node& n);

}  // namespace hone::onnx_io
