#include "task/data/staged_rows.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <unordered_set>

#include "core/descriptor.h"
#include "core/file.h"
#include "core/file_output.h"
#include "core/json.h"
#include "core/sha256.h"
#include "pipeline/pipeline.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = size_t{1} << 20;

Status EachChunk(const std::string& path, const std::function<Status(std::string_view)>& take) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path, errno);
  const Descriptor file(fd);
  std::string buffer(kChunkBytes, '\0');
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    if (got == 0) return {};
    MUSTER_TRY(take(std::string_view(buffer).substr(0, static_cast<size_t>(got))));
  }
}

// Passes chunks on line by line.
class Lines {
 public:
  explicit Lines(std::function<Status(std::string_view)> take) : take_(std::move(take)) {}

  Status Add(std::string_view chunk) {
    for (size_t begin = 0; begin < chunk.size();) {
      const size_t end = chunk.find('\n', begin);
      if (end == std::string_view::npos) {
        open_ += chunk.substr(begin);
        return {};
      }
      const std::string_view line = chunk.substr(begin, end - begin);
      begin = end + 1;
      if (open_.empty()) {
        MUSTER_TRY(take_(line));
        continue;
      }
      open_ += line;
      MUSTER_TRY(take_(open_));
      open_.clear();
    }
    return {};
  }

 private:
  const std::function<Status(std::string_view)> take_;
  std::string open_;  // a line that has not ended yet
};

// Identifies a letter by its document's shard and position. Hashed, since there may be as many
// letters as rows.
size_t IdentityOf(const Json& letter) {
  const auto item = pipeline::WorkItemName::Parse(letter.value("item", ""));
  return std::hash<std::string>()((item ? std::to_string(item->shard) : std::string()) + "/" +
                                  letter.value("position", ""));
}

}  // namespace

Result<StagedRows> JoinRows(const std::vector<std::string>& pieces, const std::string& path,
                            ColumnTypes& types, const std::stop_token& stop) {
  // A single piece is complete and durable: a second name is enough, if it is on the same disk.
  const bool linked = pieces.size() == 1 && link(pieces.front().c_str(), path.c_str()) == 0;
  std::unique_ptr<FileOutput> output;
  if (!linked) {
    MUSTER_ASSIGN(output, CreateFileOutput(path, FileAccess::kOwner));
  }
  StagedRows all;
  Sha256 digest;
  Lines lines([&](std::string_view line) {
    ++all.rows;
    return types.Note(line);
  });
  for (const std::string& piece : pieces) {
    MUSTER_TRY(EachChunk(piece, [&](std::string_view chunk) -> Status {
      if (stop.stop_requested()) return Error{Code::kCancelled, "stopped"};
      digest.Add(chunk);
      all.bytes += static_cast<int64_t>(chunk.size());
      if (output) MUSTER_TRY(output->Append(chunk));
      return lines.Add(chunk);
    }));
  }
  if (output) MUSTER_TRY(output->Flush());
  if (linked && chmod(path.c_str(), 0600) != 0) return FileError("protect", path, errno);
  all.sha256 = digest.Hex();
  return all;
}

Result<StagedLetters> PublishLetters(const std::string& from, const std::string& fresh,
                                     const std::string& to) {
  std::error_code failed;
  fs::remove(to, failed);
  StagedLetters all;
  if (!fs::exists(from, failed)) return all;
  MUSTER_ASSIGN(const auto output, CreateFileOutput(fresh, FileAccess::kOwner));
  std::unordered_set<size_t> seen;
  Lines lines([&](std::string_view line) -> Status {
    const auto letter = ParseJson(std::string(line), from);
    // Torn by a crash: its document was read once more.
    if (!letter || !letter->is_object()) return {};
    if (!seen.insert(IdentityOf(*letter)).second) return {};
    if (all.count++ == 0) all.first_reason = letter->value("error", "");
    MUSTER_TRY(output->Append(line));
    return output->Append("\n");
  });
  MUSTER_TRY(EachChunk(from, [&](std::string_view chunk) { return lines.Add(chunk); }));
  MUSTER_TRY(output->Flush());
  MUSTER_TRY(MakePrivateFolders(fs::path(to).parent_path().string()));
  MUSTER_TRY(PublishFile(fresh, to));
  return all;
}

Result<std::string> Sha256OfFile(const std::string& path) {
  Sha256 digest;
  MUSTER_TRY(EachChunk(path, [&](std::string_view chunk) -> Status {
    digest.Add(chunk);
    return {};
  }));
  return digest.Hex();
}

}  // namespace muster::task
