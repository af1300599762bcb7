#include "report/definitions.hpp"

#include <algorithm>
#include <array>

namespace levelhead::report {
namespace {

constexpr std::array all{
    Definition{"head", "head", "One of the parallel attentions of a layer, with queries and keys of its own."},
    Definition{"query", "query", "The position that looks: one row of attention weights."},
    Definition{"key", "key", "A position that can be looked at: one column of attention weights."},
    Definition{"logit", "logit", "scale times the dot product of a query and a key; softmax makes weights of them."},
    Definition{"scale", "scale",
               "The number that dot products are multiplied by before softmax; 1/sqrt(D) in the Transformer, D being "
               "the size of a query."},
    Definition{"h75", "H75",
               "The 75th percentile of the entropy ratios of all heads: a quarter of the heads lie above it. The "
               "verdict is made of it alone."},
    Definition{
        "level", "level",
        "H75 lies between its limits, where it lies in healthy trained models; of fresh weights, every spread is "
        "within 10 % of 1."},
    Definition{"too_sharp", "too sharp",
               "H75 is below 0.48: weights stick to single keys in too many heads. Of fresh weights: the spread is "
               "above 1."},
    Definition{
        "too_flat", "too flat",
        "H75 is above 0.90: weights are nearly the same for all keys in most heads. Of fresh weights: the spread "
        "is below 1."},
    Definition{"undecided", "undecided", "Too few heads, too few keys, or only a part was asked for."},
    Definition{"broken", "broken", "A row holds a NaN that softmax can see."},
    Definition{
        "freezing_line", "freezing line",
        "sqrt(2 ln n): softmax over n Gaussian logits of a larger spread gives its weight to a few keys, however "
        "many there are. Real logits are not Gaussian, so heads above it can be healthy."},
    Definition{"rows", "rows", "How many queries the head has."},
    Definition{"empty_rows", "empty rows", "Queries that see no key."},
    Definition{"nan_rows", "NaN rows", "Queries whose logits or result are not numbers."},
    Definition{"logit_mean", "logit mean", "Mean of the logits over all pairs of a query and a key that it sees."},
    Definition{"logit_std", "logit deviation", "Standard deviation of the logits over all pairs."},
    Definition{"logit_std_within", "spread",
               "Standard deviation of the logits about the mean of their own row: the part that softmax can see."},
    Definition{"expected_spread", "expected spread",
               "The spread that the means, variances and correlation of single components of q and k let expect, were "
               "they independent of each other."},
    Definition{"suggested_scale", "suggested scale", "The scale in use over the spread: it would make the spread 1."},
    Definition{"logit_max", "largest logit", "Over all rows."},
    Definition{"logit_min", "smallest logit", "Over all rows."},
    Definition{"absmax_uncapped", "largest size", "The largest absolute logit before caps and biases."},
    Definition{"lse", "log-sum-exp", "Natural logarithm of the sum of e^logit over the keys of a row; mean over rows."},
    Definition{"entropy", "entropy", "Of a row's weights, in nats: 0 when one key has all; mean over rows."},
    Definition{"entropy_ratio", "entropy ratio",
               "Entropy over its largest possible value, ln n for n keys: 0 is one key, 1 is all keys alike."},
    Definition{"perplexity", "perplexity", "e^entropy: the entropy as a number of keys."},
    Definition{"effective_keys", "effective keys",
               "1 over the sum of squared weights: how many keys share the weight."},
    Definition{"top1", "largest weight", "The weight of the key that has most; mean over rows."},
    Definition{"saturated", "saturated rows",
               "Share of the rows that give one key more than 0.99; hardly any gradient passes them."},
    Definition{"trace_gain", "gradient gain (trace)",
               "1 minus the sum of squared weights, the trace of softmax's Jacobian: how much a logit can still move "
               "the weights. 0 is not at all."},
    Definition{
        "frobenius_gain", "gradient gain (norm)",
        "The Frobenius norm of softmax's Jacobian: at most 0.5, where two keys share the weight; near 0 where one "
        "key has all, or very many share it."},
    Definition{"first_key_mass", "first-key mass",
               "Weight on the first key a row sees. Trained models often park attention there."},
    Definition{"sink_mass", "sink mass", "Weight that a learned sink takes away from the keys."},
    Definition{"z", "z", "Spread over the freezing point sqrt(2 ln n): at 1, the softmax of Gaussian logits freezes."},
    Definition{"entropy_q05", "entropy, 5 %", "5 % of the rows have less entropy."},
    Definition{"entropy_q50", "entropy, median", "Half of the rows have less entropy."},
    Definition{"entropy_q95", "entropy, 95 %", "95 % of the rows have less entropy."},
    Definition{"top1_q05", "largest weight, 5 %", "5 % of the rows have a smaller largest weight."},
    Definition{"top1_q50", "largest weight, median", "Half of the rows have a smaller largest weight."},
    Definition{"top1_q95", "largest weight, 95 %", "95 % of the rows have a smaller largest weight."},
    Definition{"flat", "flat", "A head with an entropy ratio over 0.9: it looks at all keys nearly alike."},
    Definition{"frozen", "frozen", "A head where most rows give one key more than 0.99."},
    Definition{"sink", "sink", "A head that gives more than half of its weight to the first key."},
    Definition{"local", "local", "A head that gives more than half of its weight to the own and the previous key."},
    Definition{"nan", "NaN", "A head with a row that holds a NaN."},
    Definition{"empty", "empty", "A head with rows that see no key."},
};

}  // namespace

std::span<const Definition> definitions() { return all; }

std::string_view label_of(std::string_view term) {
  const auto* found = std::find_if(all.begin(), all.end(), [&](const Definition& d) { return d.term == term; });
  return found == all.end() ? term : found->label;
}

Json definitions_json() {
  Json json = Json::object();
  for (const auto& [term, label, text] : all) json[std::string(term)] = {{"label", label}, {"text", text}};
  return json;
}

}  // namespace levelhead::report
