// The forward pass over one captured layer, for its row states alone.
#pragma once

#include <vector>

#include "callers/capture.hpp"
#include "levelhead/verdict.hpp"

namespace levelhead::callers {

/// Change options before running to ask what else would be. It stays where it is made: inputs view its tensors.
struct LayerPass {
  Tensor q, k, v;
  Inputs inputs;
  Options options;
  std::vector<RowState> state;   // [Hq, Nq]
  std::vector<bool> nan_output;  // [Hq, Nq], or empty when v cannot bring a NaN
  std::int64_t Hq = 0, Nq = 0, Dv = 0;

  LayerPass(const Capture& capture, const CapturedLayer& layer);
  LayerPass(const LayerPass&) = delete;
  LayerPass& operator=(const LayerPass&) = delete;

  RunInfo run(Context& context);  ///< fills state and nan_output
};

/// All heads of the layer; a row that v turns into NaN counts as one.
std::vector<HeadStatistics> heads_of(const LayerPass& pass);

}  // namespace levelhead::callers
