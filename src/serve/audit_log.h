#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "core/file.h"
#include "core/json.h"
#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::serve {

struct AuditLimits {
  int64_t file_bytes = 10 << 20;  // then it becomes PATH.1, PATH.1 becomes PATH.2, …
  int kept_files = 4;             // beside the one that is written
  int refusals_per_minute = 10;   // of each role
  size_t field_bytes = 1'000;     // longer fields are cut
};

// The audit log: one JSON object a line, in a file that is rotated by size and readable only by its
// owner. Thread-safe; lines of several processes never interleave, and none is torn.
//
// A full disk does not block actions: lines that cannot be written go to the process log at once,
// and to the file when there is room again.
class AuditLog {
 public:
  AuditLog(std::string path, Env& env, AuditLimits limits = {})
      : env_(env), limits_(limits), file_(std::move(path)) {}
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // {"at", "actor", "action", "outcome", …details}. On disk when it returns, unless that is full.
  // kUnavailable: the file cannot be written for another reason; the action must not be done,
  // although its line may still appear.
  Status Add(const std::string& actor, const std::string& action, const std::string& outcome,
             const Json& details);

  // Logs a refusal. Any client can cause them at will, so beyond the limit they are only counted;
  // the count is in the next line written, or in the last.
  void AddRefusal(const std::string& actor, const std::string& action, const std::string& why);

 private:
  // The refusals of one role.
  struct Refusals {
    MonoTime since{};  // when the minute began
    int written = 0;
    int64_t left_out = 0;
  };

  std::string LineOf(const std::string& actor, const std::string& action,
                     const std::string& outcome, const Json& details) const;
  Json Cut(const Json& value) const;
  void CountLeftOut() REQUIRES(mutex_);
  Status Write() REQUIRES(mutex_);
  bool IsFull() const;
  void Rotate();

  Env& env_;
  const AuditLimits limits_;
  AppendFile file_;
  Mutex mutex_;
  std::map<std::string, Refusals> refusals_ GUARDED_BY(mutex_);  // by role
  std::deque<std::string> waiting_ GUARDED_BY(mutex_);  // lines that are not in the file yet
};

}  // namespace muster::serve
