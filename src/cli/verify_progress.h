#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/progress.h"
#include "muster/env.h"
#include "muster/migrate.h"
#include "muster/result.h"

namespace muster::cli {

// What a comparison is of. Another one continues only if all of this is the same.
struct ComparedSides {
  std::string source;  // URLs; a relative path in one is that of the current folder
  std::string sink;
  std::string collections = {};  // of the source
  std::string target = {};
  std::string transforms = {};
  std::string scripts = {};  // that the transforms name
  bool checksums = false;
};

// The file of its progress in this folder.
std::string VerifyStateFile(const std::string& folder, const ComparedSides& sides);

// Success: it is gone, or there is none. An empty name names none.
Status RemoveVerifyState(const std::string& file);

// Shows the progress of a comparison, and keeps it in a file, so that another process can continue.
class KeptProgress final : public pipeline::VerifyObserver {
 public:
  // `file`: empty if it is not kept. `before`: documents of earlier comparisons.
  KeptProgress(std::string file, Progress& progress, uint64_t before, Env& env);

  // Of an earlier process; empty: none.
  Result<std::string> Load() const;

  void Advanced(int64_t documents) override;
  Status Save(const std::function<std::string()>& state) override;

 private:
  const std::string file_;
  Progress& progress_;
  const uint64_t before_;
  Env& env_;
  MonoTime saved_;
};

}  // namespace muster::cli
