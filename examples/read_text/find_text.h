// SPDX-License-Identifier: Apache-2.0
// Where there is text in a picture.  source: Liao et al., Real-time scene text detection with
// differentiable binarization (2020)
#pragma once
#include "network.h"
#include "picture.h"

struct TextBox {
  Quad corners;      // in the picture; the text runs from the first corner to the second
  double score = 0;  // mean of the network's probabilities inside
};

// Finds lines of text, in reading order: from the top, and from the left where they are level.
//   longest_side: what larger pictures are scaled to for the network, pixels
//   errors: those of Network::Run; InvalidArgument (the network makes no map of its input)
absl::StatusOr<std::vector<TextBox>> FindText(Network& detector, const Picture& picture,
                                              int64_t longest_side);
