#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::serve {

constexpr int kMaxLetters = 1'000;  // in one answer

// A letter without its document.
struct LetterHead {
  int64_t offset = 0;
  std::string run;
  std::string collection;
  std::string item;
  std::string id;
  std::string position;
  std::string error;
  std::string document = {};  // its first bytes
};

struct LetterPage {
  std::vector<LetterHead> letters;
  std::optional<int64_t> next;  // none: the end
};

struct LetterFile {
  std::string name;
  std::string path;
  std::string run;
  int64_t letters = 0;
  int64_t bytes = 0;
  WallTime changed{};
  std::map<std::string, int64_t> signatures;   // how many letters have which
  std::map<std::string, LetterHead> examples;  // the first letter of each signature
  std::string problem;                         // why it cannot be read
};

// The dead-letter files in a folder. Files grow: only new bytes are read. Thread-safe.
class DeadLetterIndex {
 public:
  explicit DeadLetterIndex(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  Result<std::vector<LetterFile>> Files();
  // kNotFound: no such file in the folder.
  Result<LetterFile> Find(const std::string& name);
  // Letters from an offset on; with a signature only those that have it.
  Result<LetterPage> Read(const std::string& name, int64_t after, int limit,
                          const std::string& signature);

 private:
  struct Known {
    LetterFile file;
    uint64_t inode = 0;
    int64_t scanned = 0;
    std::string newer = {};  // why a letter could not be read
  };
  Status Scan(Known& known);

  const std::string folder_;
  Mutex mutex_;
  std::map<std::string, Known> known_ GUARDED_BY(mutex_);
};

}  // namespace muster::serve
