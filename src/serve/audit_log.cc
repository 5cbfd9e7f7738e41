#include "serve/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/secrets.h"
#include "states/timestamp.h"

namespace muster::serve {

Status AuditLog::Add(const std::string& actor, const std::string& action,
                     const std::string& outcome, const Json& details) {
  Json entry{{"at", states::FormatTimestamp(env_.WallNow())},
             {"actor", actor},
             {"action", action},
             {"outcome", outcome}};
  for (const auto& [name, value] : details.items()) entry[name] = value;
  const std::string line = Redact(ToJsonText(entry)) + "\n";
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  // Opened anew for each: whoever rotates the file needs to tell nobody.
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  bool written = file >= 0;
  written = written && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  written = written && fdatasync(file) == 0;
  const int reason = errno;
  if (file >= 0) close(file);
  if (written) return {};
  return Error{Code::kFull,
               "nothing is done that cannot be written to the audit log, " + path_ + ": " +
                   std::strerror(reason),
               "make room, or name another file with --audit-log"};
}

}  // namespace muster::serve
