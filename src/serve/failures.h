#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"

namespace muster::serve {

// What has failed.
enum class FailureKind { kDeadLetter, kItem, kStore, kStream, kTask, kWorker };

struct Failure {
  FailureKind kind = FailureKind::kTask;
  std::string store = {};
  std::string run = {};
  std::string name;
  std::string error;
  std::optional<WallTime> at = {};
  std::string path;  // API path of what failed
};

// Failures, grouped by the signatures of their errors.
class FailureGroups {
 public:
  void Add(const Failure& failure, int64_t count = 1);

  void Add(const FailureGroups& other);

  int64_t total() const { return total_; }
  // The groups with the most failures, by signature.
  Json Largest(size_t most) const;

 private:
  struct Group {
    int64_t count = 0;
    std::map<FailureKind, int64_t> kinds;
    std::vector<Failure> examples;
  };
  int64_t total_ = 0;
  std::map<std::string, Group> groups_;
};

}  // namespace muster::serve
