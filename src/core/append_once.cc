#include "core/append_once.h"

#include <cerrno>
#include <optional>

#include "core/file.h"
#include "core/file_calls.h"
#include "core/json.h"
#include "core/planted_bug.h"

namespace muster {
namespace {

constexpr size_t kChunk = 64 * 1024;

struct Line {
  int64_t offset = 0;
  std::string text;  // without its end
};

// Closes a descriptor of injected calls.
class Opened {
 public:
  Opened(FileCalls& calls, int fd) : calls_(calls), fd_(fd) {}
  ~Opened() {
    if (fd_ >= 0) calls_.Close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  int get() const { return fd_; }

 private:
  FileCalls& calls_;
  const int fd_;
};

bool IsWhole(const std::string& text, std::string_view key) {
  return text.starts_with(key) && Json::parse(text, nullptr, false).is_object();
}

// The complete line with this key. A line torn by a crash does not count.
Result<std::optional<Line>> FindLine(const std::string& path, std::string_view key,
                                     FileCalls& calls) {
  const Opened file(calls, calls.Open(path, true));
  if (file.get() < 0) return FileError("open", path, -file.get());
  std::string chunk(kChunk, '\0');
  Line line;
  for (int64_t offset = 0;;) {
    const int64_t read = calls.Read(file.get(), chunk.data(), kChunk, offset);
    if (read == -EINTR) continue;
    if (read < 0) return FileError("read", path, static_cast<int>(-read));
    if (read == 0) break;
    for (std::string_view rest(chunk.data(), static_cast<size_t>(read)); !rest.empty();) {
      const size_t end = rest.find('\n');
      line.text += rest.substr(0, end);
      if (end == std::string_view::npos) break;
      if (IsWhole(line.text, key)) return std::optional<Line>(std::move(line));
      line.offset += std::ssize(line.text) + 1;
      line.text.clear();
      rest.remove_prefix(end + 1);
    }
    offset += read;
  }
  if (IsWhole(line.text, key)) return std::optional<Line>(std::move(line));
  return std::optional<Line>();
}

// Writes a line over itself and syncs it. A sync alone would not do: once one has failed, the
// kernel takes the page for clean, and the next one succeeds although nothing was written.
Status WriteAgain(const std::string& path, const Line& line, FileCalls& calls) {
  const Opened file(calls, calls.OpenToRewrite(path));
  if (file.get() < 0) return FileError("open", path, -file.get());
  // With the line ends around it, which may be on other pages.
  const bool first = line.offset == 0;
  const std::string whole = (first ? "" : "\n") + line.text + "\n";
  std::string_view rest = whole;
  int64_t offset = line.offset - (first ? 0 : 1);
  if (PLANTED_BUG(lines_are_not_written_again)) rest = {};
  while (!rest.empty()) {
    const int64_t written = calls.WriteAt(file.get(), rest, offset);
    if (written == -EINTR) continue;
    if (written < 0) return FileError("write to", path, static_cast<int>(-written));
    rest.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  if (const int synced = calls.Sync(file.get()); synced != 0) {
    return FileError("sync", path, -synced);
  }
  return {};
}

}  // namespace

Status AppendOnce(const std::string& path, std::string_view line, std::string_view key,
                  FileCalls& calls) {
  AppendFile file(path, calls);
  Status again;
  // Under the file's lock: a concurrent call cannot append the same key.
  MUSTER_TRY(file.Append(line, [&] {
    const auto found = FindLine(path, key, calls);
    if (!found) again = found.error();
    if (found && *found) again = WriteAgain(path, **found, calls);
    return !found || found->has_value();
  }));
  MUSTER_TRY(again);
  return file.Sync();
}

}  // namespace muster
