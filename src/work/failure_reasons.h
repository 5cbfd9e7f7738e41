#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fields.h"
#include "muster/work.h"

namespace muster::work {

// Groups failed documents by reason, in bounded memory: the first reasons have a group of their
// own, all further ones share "other".
class FailureReasons {
 public:
  static constexpr size_t kMaxListed = 20;

  explicit FailureReasons(size_t most = kMaxListed) : most_(most) {}

  void Add(std::string_view id, std::string_view message);
  void Add(const FailureReason& reason);
  void AddOther(FailureReason reason);

  int64_t total() const { return total_; }

  // The most frequent first, at most kMaxListed and then "other".
  std::vector<FailureReason> List() const;

  // About 14 KB at most.
  Json ToJson() const;
  static FailureReasons Read(const Json& json, JsonFields& fields);

 private:
  size_t most_;
  std::map<std::string, FailureReason> groups_;
  FailureReason other_;
  int64_t total_ = 0;
};

Json ReasonJson(const FailureReason& reason);
FailureReason ReadReason(const Json& json, JsonFields& fields);

}  // namespace muster::work
