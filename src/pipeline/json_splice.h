#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"

namespace muster {

// Edits to one text, from front to back, that leave every other byte as it is. Used again and
// again; for one thread.
class JsonSplice {
 public:
  // Starts anew. `text` must live until Result.
  void Start(std::string_view text);

  // Replaces a part of the text, which `part` is a view of: empty to insert before it. Parts come
  // in order and don't overlap.
  void Replace(std::string_view part, std::string_view replacement);

  bool empty() const { return edits_.empty(); }

  // The text with all edits, in `arena`; the text itself if there are none.
  std::string_view Result(Arena& arena) const;

 private:
  struct Edit {
    size_t begin;
    size_t end;
    size_t text;  // where its replacement begins in texts_
    size_t size;
  };

  std::string_view text_;
  std::vector<Edit> edits_;
  std::string texts_;
};

}  // namespace muster
