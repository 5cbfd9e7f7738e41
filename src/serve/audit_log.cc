#include "serve/audit_log.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/record_version.h"
#include "core/secrets.h"
#include "core/timestamp.h"

namespace muster::serve {
namespace {

constexpr std::chrono::minutes kMinute{1};
constexpr size_t kMaxWaiting = 1'000;
constexpr RecordFormat kFormat{"audit log", 1};  // of a line; nothing here reads them back

Error Refused(const Error& why) {
  return Error{why.code == Code::kFull ? Code::kFull : Code::kUnavailable,
               "action refused: cannot write the audit log: " + why.message,
               "name another file with --audit-log"};
}

}  // namespace

AuditLog::~AuditLog() {
  const MutexLock lock(mutex_);
  CountLeftOut();
  if (!waiting_.empty()) static_cast<void>(Write());
  static_cast<void>(file_.Sync());
}

Status AuditLog::Add(const std::string& actor, const std::string& action,
                     const std::string& outcome, const Json& details) {
  const std::string line = LineOf(actor, action, outcome, details);
  const MutexLock lock(mutex_);
  CountLeftOut();
  // Dropped lines are in the process log.
  while (waiting_.size() >= kMaxWaiting) waiting_.pop_front();
  waiting_.push_back(line);
  Status written = Write();
  if (written) return {};
  if (written.error().code != Code::kFull) {
    if (!waiting_.empty()) waiting_.pop_back();
    return written;
  }
  Log(Level::kError, "the disk is full: not in the audit log yet", {{"entry", line}});
  return {};
}

void AuditLog::AddRefusal(const std::string& actor, const std::string& action,
                          const std::string& why) {
  {
    const MutexLock lock(mutex_);
    Refusals& role = refusals_[actor.substr(0, actor.find('@'))];
    const MonoTime now = env_.MonoNow();
    if (role.written == 0 || now - role.since >= kMinute) {
      role.since = now;
      role.written = 0;
    }
    if (role.written == limits_.refusals_per_minute) {
      ++role.left_out;
      return;
    }
    ++role.written;
  }
  static_cast<void>(Add(actor, action, "refused", {{"why", why}}));
}

// Adds a line with the number of refusals left out since the last one.
void AuditLog::CountLeftOut() {
  for (auto& [role, refusals] : refusals_) {
    const int64_t count = std::exchange(refusals.left_out, 0);
    if (count > 0) waiting_.push_back(LineOf(role, "", "refused, left out", {{"count", count}}));
  }
}

std::string AuditLog::LineOf(const std::string& actor, const std::string& action,
                             const std::string& outcome, const Json& details) const {
  Json entry{{kVersionField, kFormat.version},
             {"at", FormatTimestamp(env_.WallNow())},
             {"actor", actor},
             {"action", Cut(action)},
             {"outcome", outcome}};
  for (const auto& [name, value] : details.items()) entry[name] = Cut(value);
  return Redact(ToJsonText(entry));
}

// Redacted first: half a secret would not be recognised.
Json AuditLog::Cut(const Json& value) const {
  std::string text =
      Redact(value.is_string() ? value.get_ref<const std::string&>() : ToJsonText(value));
  if (text.size() <= limits_.field_bytes) return value;
  text.resize(limits_.field_bytes);
  return text + "…";
}

// Appends all waiting lines, or none.
Status AuditLog::Write() {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_.path()).parent_path(), ignored);
  std::string lines;
  for (const std::string& line : waiting_) lines += (lines.empty() ? "" : "\n") + line;
  if (const Status added = file_.Append(lines); !added) return Refused(added.error());
  // The file remembers lines that are not durable yet.
  waiting_.clear();
  if (const Status synced = file_.Sync(); !synced) return Refused(synced.error());
  if (!IsFull()) return {};
  // Only one process moves it.
  const Status rotated = file_.WhileLocked([this] {
    if (IsFull()) Rotate();
  });
  if (!rotated) {
    Log(Level::kWarning, "the audit log is not rotated", {{"error", rotated.error().message}});
  }
  return {};
}

bool AuditLog::IsFull() const {
  struct stat info {};
  return stat(file_.path().c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_size >= limits_.file_bytes;
}

void AuditLog::Rotate() {
  const auto name = [&](int number) { return file_.path() + "." + std::to_string(number); };
  for (int number = limits_.kept_files - 1; number > 0; --number)
    static_cast<void>(rename(name(number).c_str(), name(number + 1).c_str()));
  static_cast<void>(rename(file_.path().c_str(), name(1).c_str()));
}

}  // namespace muster::serve
