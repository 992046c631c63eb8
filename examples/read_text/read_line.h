// SPDX-License-Identifier: Apache-2.0
// What a line of text says.  source: Graves et al., Connectionist temporal classification (2006)
#pragma once
#include "network.h"
#include "picture.h"

// The letters that a recogniser tells apart, from its metadata entry "character": one a line. Class
// 0 is none of them, and a space comes after the last.
class Alphabet {
 public:
  // errors: InvalidArgument (the model has no such entry)
  static absl::StatusOr<Alphabet> Of(const Network& recogniser);
  int64_t classes() const { return static_cast<int64_t>(letters_.size()); }
  std::string_view operator[](int64_t c) const { return letters_[static_cast<size_t>(c)]; }

 private:
  std::vector<std::string> letters_;
};

struct Reading {
  std::string text;       // UTF-8
  double confidence = 0;  // mean probability of the letters
};

// The box turned by half a circle if the classifier is sure that it is upside down.
//   errors: those of Network::Run; InvalidArgument (not two classes)
absl::StatusOr<Quad> Upright(Network& classifier, const Picture& picture, const Quad& box);

// Reads what `box` shows: the likeliest class of each step, repeats and blanks dropped.
//   errors: those of Network::Run; InvalidArgument (other classes than the alphabet has)
absl::StatusOr<Reading> ReadLine(Network& recogniser, const Alphabet& alphabet,
                                 const Picture& picture, const Quad& box);
