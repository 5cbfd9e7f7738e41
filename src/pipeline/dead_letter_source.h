#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster {

// Lines of a file that are no dead letters: torn by a crash, or not ours.
struct BadLines {
  static constexpr size_t kMaxNamed = 10;

  int64_t count = 0;
  std::vector<size_t> first = {};  // their numbers, up to kMaxNamed

  void Add(size_t number);
  // "2 lines are no dead letters and were skipped: 3, 17"
  std::string ToString() const;
};

// Reads a file of dead letters as documents of the collections that they were of, each once: a
// crash may have left the same letter twice. A letter that holds no JSON object is a document with
// a defect. Lines that are no letters are skipped.
class DeadLetterSource : public Source {
 public:
  // As they were when the file was opened.
  virtual const BadLines& bad_lines() const = 0;
};

// kInvalid: the file cannot be read, or has lines and none of them is a letter.
Result<std::unique_ptr<DeadLetterSource>> OpenDeadLetterSource(const std::string& path);

}  // namespace muster
