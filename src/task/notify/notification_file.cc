#include "task/notify/notification_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "core/descriptor.h"
#include "core/file.h"

namespace muster::task {
namespace {

struct Line {
  int64_t offset = 0;
  std::string text;  // without its end
};

// The complete line with this key. A line torn by a crash does not count.
std::optional<Line> FindLine(const std::string& path, const std::string& dedupe) {
  const std::string begin = "{\"dedupe\":" + ToJsonText(Json(dedupe)) + ",";
  std::ifstream file(path);
  Line line;
  while (std::getline(file, line.text)) {
    if (line.text.starts_with(begin) && Json::parse(line.text, nullptr, false).is_object()) {
      return line;
    }
    line.offset += static_cast<int64_t>(line.text.size()) + 1;
  }
  return std::nullopt;
}

// Writes a line over itself and syncs it. A sync alone would not do: once one has failed, the
// kernel takes the page for clean, and the next one succeeds although nothing was written.
Status WriteAgain(const std::string& path, const Line& line, FileCalls& calls) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError("open", path, errno);
  std::string_view rest = line.text;
  int64_t offset = line.offset;
  while (!rest.empty()) {
    const ssize_t written = pwrite(file.get(), rest.data(), rest.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write to", path, errno);
    rest.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  if (const int synced = calls.Sync(file.get()); synced != 0) {
    return FileError("sync", path, -synced);
  }
  return {};
}

}  // namespace

Status AppendNotification(const std::string& path, const Notification& news, FileCalls& calls) {
  AppendFile file(path, calls);
  Status again;
  // Under the file's lock: a concurrent delivery cannot append the same key.
  MUSTER_TRY(file.Append(news.Line(), [&] {
    const auto line = FindLine(path, news.dedupe);
    if (line) again = WriteAgain(path, *line, calls);
    return line.has_value();
  }));
  MUSTER_TRY(again);
  return file.Sync();
}

}  // namespace muster::task
