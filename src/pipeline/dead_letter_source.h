#pragma once

#include <compare>
#include <map>
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

// Letters of one run that are to be written in one way.
struct LetterGroup {
  std::string run;
  std::string target;       // empty: an earlier version wrote them, which did not say it
  bool transformed = true;  // the documents are as the sink is to have them

  auto operator<=>(const LetterGroup&) const = default;
};

// A file of dead letters as it was when it was opened: what is appended later is not read. Lines
// that are no letters are skipped. Thread-safe.
class DeadLetterLog {
 public:
  // kInvalid: the file cannot be read, or has lines and none of them is a letter.
  static Result<DeadLetterLog> Open(const std::string& path);

  std::vector<LetterGroup> groups() const;
  const BadLines& bad_lines() const { return bad_lines_; }
  size_t lines() const { return lines_; }

  // The same for a copy of the file and when it has grown, another for other files.
  const std::string& fingerprint() const { return fingerprint_; }

  // How many letters of a group lie after so many lines, repeated ones included.
  int64_t LettersAfter(const LetterGroup& group, size_t lines) const;

  // Reads the letters of a group after so many lines, as documents of the source's collections,
  // each once: a crash may have left the same letter twice. A letter that holds no JSON object is a
  // document with a defect.
  std::unique_ptr<Source> Read(const LetterGroup& group, size_t lines) const;

 private:
  struct Place {
    std::string collection;
    size_t line = 0;
    bool deleted = false;
  };

  explicit DeadLetterLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::map<LetterGroup, std::vector<Place>> letters_;
  BadLines bad_lines_;
  size_t lines_ = 0;
  std::string fingerprint_;
};

}  // namespace muster
