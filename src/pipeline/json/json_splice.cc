#include "pipeline/json/json_splice.h"

#include <cassert>
#include <cstring>

namespace muster::pipeline {

void JsonSplice::Start(std::string_view text) {
  text_ = text;
  edits_.clear();
  texts_.clear();
}

void JsonSplice::Replace(std::string_view part, std::string_view replacement) {
  const auto begin = static_cast<size_t>(part.data() - text_.data());
  assert(begin + part.size() <= text_.size() && (edits_.empty() || begin >= edits_.back().end));
  edits_.push_back({begin, begin + part.size(), texts_.size(), replacement.size()});
  texts_ += replacement;
}

std::string_view JsonSplice::Result(Arena& arena) const {
  if (edits_.empty()) return text_;
  size_t size = text_.size() + texts_.size();
  for (const Edit& edit : edits_) size -= edit.end - edit.begin;
  char* const start = arena.Allocate(size);
  char* to = start;
  const auto append = [&to](const char* from, size_t length) {
    std::memcpy(to, from, length);
    to += length;
  };
  size_t copied = 0;
  for (const Edit& edit : edits_) {
    append(text_.data() + copied, edit.begin - copied);
    append(texts_.data() + edit.text, edit.size);
    copied = edit.end;
  }
  append(text_.data() + copied, text_.size() - copied);
  return {start, size};
}

}  // namespace muster::pipeline
