#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"

namespace muster::pipeline {

// Front-to-back edits to one text that leave all other bytes untouched. Reusable; for one thread.
class JsonSplice {
 public:
  // Starts over. `text` must live until Result.
  void Start(std::string_view text);

  // Replaces `part`, a view into the text; an empty part inserts before it. Parts must be in order
  // and must not overlap.
  void Replace(std::string_view part, std::string_view replacement);

  bool empty() const { return edits_.empty(); }

  // The edited text, in `arena`; the text itself if nothing was edited.
  std::string_view Result(Arena& arena) const;

 private:
  struct Edit {
    size_t begin;
    size_t end;
    size_t text;  // start of its replacement in texts_
    size_t size;
  };

  std::string_view text_;
  std::vector<Edit> edits_;
  std::string texts_;
};

}  // namespace muster::pipeline
