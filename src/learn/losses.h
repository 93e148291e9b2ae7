#pragma once

#include "ir/functional.h"

// The losses that training makes small: real scalars of the element type of `y`, means over all
// its elements or rows.

namespace hone {

// The mean of (y - target)^2; both have one type.
Value mean_squared_error(Value y, Value target);

// The mean of -log(softmax(logits)[label]) over all dims but the last, which are those of the
// labels: integers. A label outside of the last dim counts as its nearest end.
Value cross_entropy(Value logits, Value labels);
// The part of a model that cross_entropy() takes: the operand of a final softmax, or the output.
ValueId logits_of(const Graph& graph, ValueId output);

// The mean of (log(y) - log(target))^2, of numbers above 0: errors count by their ratio.
Value log_squared_error(Value y, Value target);

// ---- Ranks --------------------------------------------------------------------------------------
// The items of a list lie along the last dim; those with higher targets should get higher scores.
// Pairs of items with equal targets count nothing; means are over the pairs that count.

// The mean of max(0, margin - (score of the higher - score of the lower)).
Value pairwise_hinge(Value scores, Value targets, double margin = 1);
// The mean of log(1 + exp(-(score of the higher - score of the lower))). Burges et al. 2005.
Value pairwise_logistic(Value scores, Value targets);
// Only of pairs whose targets differ by more than both their noises, as deviations are added up.
Value noisy_pairwise_logistic(Value scores, Value targets, Value noise);
// The same, each pair by how much farther than that they are apart.
Value weighted_pairwise_logistic(Value scores, Value targets, Value noise);
// As pairwise_logistic(), each pair by how much DCG / ideal DCG changes if the two swap places. The
// gain of a target t is 2^t - 1. Burges et al. 2006.
Value lambda_rank(Value scores, Value targets);
// The mean over lists of -log(probability of the order by targets), in the model of Plackett and
// Luce. The first of equal targets comes first. Xia et al. 2008.
Value list_mle(Value scores, Value targets);

// ---- Policies -----------------------------------------------------------------------------------

// The clipped surrogate of Schulman et al. 2017, as a loss: log probabilities of the actions by the
// policy now and by the one that acted, and how much better the actions were than expected.
Value clipped_policy_loss(Value log_probability, Value old_log_probability, Value advantage,
                          double clip = 0.2);

}  // namespace hone
