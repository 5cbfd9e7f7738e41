#include "serve/audit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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

Error LastError(const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return Error{full ? Code::kFull : Code::kUnavailable,
               "action refused: cannot write the audit log " + path + ": " + std::strerror(errno),
               "name another file with --audit-log"};
}

}  // namespace

AuditLog::~AuditLog() {
  const MutexLock lock(mutex_);
  CountLeftOut();
  if (!waiting_.empty()) static_cast<void>(Write());
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
    waiting_.pop_back();
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
  return Redact(ToJsonText(entry)) + "\n";
}

// Redacted first: half a secret would not be recognised.
Json AuditLog::Cut(const Json& value) const {
  std::string text =
      Redact(value.is_string() ? value.get_ref<const std::string&>() : ToJsonText(value));
  if (text.size() <= limits_.field_bytes) return value;
  text.resize(limits_.field_bytes);
  return text + "…";
}

// Writes all waiting lines, or none. Opens the file each time: another process, or an operator, may
// have moved it.
Status AuditLog::Write() {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return LastError(path_);
  Status written = flock(file, LOCK_EX) == 0 ? WriteTo(file) : LastError(path_);
  close(file);
  if (written) waiting_.clear();
  return written;
}

Status AuditLog::WriteTo(int file) {
  struct stat before {};
  if (fstat(file, &before) != 0) return LastError(path_);
  std::string lines;
  for (const std::string& line : waiting_) lines += line;
  const ssize_t written = write(file, lines.data(), lines.size());
  if (written == static_cast<ssize_t>(lines.size()) && fdatasync(file) == 0) {
    if (before.st_size + written >= limits_.file_bytes) Rotate(file);
    return {};
  }
  // A short write means that the disk is full.
  if (written >= 0 && written < static_cast<ssize_t>(lines.size())) errno = ENOSPC;
  Error error = LastError(path_);
  // The next line must not be appended to half of this one.
  if (written > 0 && ftruncate(file, before.st_size) != 0)
    Log(Level::kWarning, "the audit log has half a line", {{"file", path_}});
  return error;
}

// The file is locked, so that only one process moves it.
void AuditLog::Rotate(int file) {
  struct stat mine {};
  struct stat there {};
  const bool same = fstat(file, &mine) == 0 && stat(path_.c_str(), &there) == 0 &&
                    mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
  if (!same) return;
  const auto name = [&](int number) { return path_ + "." + std::to_string(number); };
  for (int number = limits_.kept_files - 1; number > 0; --number)
    static_cast<void>(rename(name(number).c_str(), name(number + 1).c_str()));
  static_cast<void>(rename(path_.c_str(), name(1).c_str()));
}

}  // namespace muster::serve
