#include "pipeline/file/file_sink_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/url.h"

namespace muster::pipeline {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr size_t kMaxStateBytes = size_t{1} << 20;
constexpr auto kLockPause = milliseconds(20);
constexpr int kLockTries = 500;
constexpr std::string_view kItemEnding = ".item";
constexpr char kIdentity[] = "/id";
// An item's name never contains `#`.
constexpr char kPieceStart[] = "#";

std::string_view PhaseName(FileItem::Phase phase) {
  switch (phase) {
    case FileItem::Phase::kSealed:
      return "sealed";
    case FileItem::Phase::kFinished:
      return "finished";
    case FileItem::Phase::kOpen:
      break;
  }
  return "open";
}

// Output of another run must not be touched.
Error NotOurs(const std::string& output, std::string_view why) {
  return {Code::kConflict, output + " " + std::string(why),
          "remove it if it is not needed, or name another target"};
}

// Whether anything besides the state exists.
bool HasForeignFiles(const std::string& output, const std::string& state) {
  std::error_code failed;
  if (!fs::is_directory(output, failed)) return fs::exists(output, failed);
  for (fs::directory_iterator entry(output, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    if (entry->path().filename() != fs::path(state).filename()) return true;
  }
  return false;
}

}  // namespace

std::string FileItem::ToJson() const {
  Json list = Json::array();
  for (const FilePiece& piece : pieces)
    list.push_back({{"file", piece.path}, {"bytes", piece.bytes}});
  return ToJsonText(Json{{"item", item},
                         {"incarnation", incarnation},
                         {"epoch", epoch},
                         {"holder", holder},
                         {"writer", writer},
                         {"phase", PhaseName(phase)},
                         {"progress", progress.ToJson()},
                         {"pieces", list},
                         {"output", output}});
}

Result<FileItem> FileItem::FromJson(std::string_view text, const std::string& origin) {
  MUSTER_ASSIGN(const Json json, ParseJson(text, origin));
  try {
    FileItem item;
    item.item = json.at("item").get<std::string>();
    item.incarnation = json.at("incarnation").get<std::string>();
    item.epoch = json.at("epoch").get<int64_t>();
    item.holder = json.at("holder").get<std::string>();
    item.writer = json.at("writer").get<std::string>();
    const auto phase = json.at("phase").get<std::string>();
    item.phase = phase == "sealed"     ? Phase::kSealed
                 : phase == "finished" ? Phase::kFinished
                                       : Phase::kOpen;
    MUSTER_ASSIGN(item.progress, Progress::FromJson(json.at("progress").get<std::string>()));
    for (const Json& piece : json.at("pieces")) {
      item.pieces.push_back(
          {piece.at("file").get<std::string>(), piece.at("bytes").get<uint64_t>()});
    }
    item.output = json.at("output").get<std::string>();
    return item;
  } catch (const Json::Exception& error) {
    return Error{Code::kCorrupt, origin + " is damaged: " + error.what()};
  }
}

std::string SafeFileName(const std::string& text) {
  constexpr size_t kLongest = 150;
  std::string name = PercentEncode(text);
  if (name.empty()) return "%";
  if (name.starts_with('.')) name = "%2E" + name.substr(1);
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "-" + Sha256Hex(text).substr(0, 16);
  return name;
}

FileSinkState::Lock::Lock(Lock&& other) noexcept
    : threads_(std::move(other.threads_)), fd_(std::exchange(other.fd_, -1)) {}

FileSinkState::Lock::~Lock() {
  if (fd_ >= 0) flock(fd_, LOCK_UN);
}

FileSinkState::~FileSinkState() { close(lock_fd_); }

Result<std::unique_ptr<FileSinkState>> FileSinkState::Open(const std::string& folder,
                                                           const std::string& output,
                                                           const Fence& fence, Env& env) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return FileError("create", folder, failed.value());
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return FileError("open", path, errno);
  std::unique_ptr<FileSinkState> state(new FileSinkState(folder, fence.alone, fd, env));
  // A standalone run keeps the lock until it exits, so its next owner knows that the run is over.
  if (fence.alone) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      return NotOurs(output, "is being written by another migration");
    }
    MUSTER_TRY(state->Claim(output, fence));
  } else {
    MUSTER_ASSIGN(const Lock lock, state->Acquire());
    MUSTER_TRY(state->Claim(output, fence));
  }
  return state;
}

Result<std::unique_ptr<FileSinkState>> FileSinkState::Existing(const std::string& folder,
                                                               Env& env) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return nullptr;
  if (fd < 0) return FileError("open", path, errno);
  return std::unique_ptr<FileSinkState>(new FileSinkState(folder, false, fd, env));
}

Status FileSinkState::Mark(const std::string& folder, Env& env) {
  const std::string path = folder + kIdentity;
  std::error_code failed;
  if (fs::exists(path, failed)) return {};
  // Created atomically by the first process.
  const std::string id = env.NewId();
  const std::string fresh = path + "-" + id;
  MUSTER_TRY(ReplaceFile(fresh, id));
  const int reason = link(fresh.c_str(), path.c_str()) == 0 ? 0 : errno;
  fs::remove(fresh, failed);
  if (reason != 0 && reason != EEXIST) return FileError("link", path, reason);
  return SyncFolderOf(path);
}

Result<std::string> FileSinkState::IdentityOf(const std::string& folder) {
  std::error_code failed;
  const std::string path = folder + kIdentity;
  if (fs::exists(path, failed)) return ReadFile(path, kMaxStateBytes);
  // Started by an earlier version.
  if (fs::exists(folder + "/run.json", failed)) return std::string();
  return FileError("find", folder, ENOENT);
}

// Claims the collection for this run, or confirms that it already is.
Status FileSinkState::Claim(const std::string& output, const Fence& fence) {
  const std::string path = folder_ + "/run.json";
  std::error_code failed;
  if (fs::exists(path, failed)) {
    MUSTER_ASSIGN(const Json run, ReadJsonFile(path));
    const bool same_run = run.value("run", "") == fence.run;
    if (!same_run && alone_ && run.value("alone", false)) {
      MUSTER_TRY(RemoveLeftovers());
    } else if (!same_run) {
      return NotOurs(output, "was written by another run, '" + run.value("run", "") + "'");
    } else if (run.value("incarnation", "") != fence.incarnation && !fence.adopts) {
      return Error{
          Code::kConflict,
          output + " was written by another incarnation of the run '" + fence.run + "'",
          "start its workers with --new-incarnation to continue from what is there; to start "
          "over, remove it and use another run name"};
    }
  }
  if (!fs::exists(path, failed) && HasForeignFiles(output, folder_)) {
    fs::remove_all(folder_, failed);  // nothing of ours is left
    return NotOurs(output, "exists, and was not written by a migration that can continue");
  }
  return ReplaceFile(
      path, ToJsonText(Json{
                {"run", fence.run}, {"incarnation", fence.incarnation}, {"alone", fence.alone}}));
}

Status FileSinkState::RemoveLeftovers() {
  MUSTER_ASSIGN(const auto items, LoadAll());
  std::error_code failed;
  for (const FileItem& item : items) {
    if (!item.output.empty()) fs::remove(item.output, failed);
  }
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    if (name != "lock" && "/" + name != kIdentity) fs::remove(entry.path(), failed);
  }
  return {};
}

Result<FileSinkState::Lock> FileSinkState::Acquire() {
  std::unique_lock threads(mutex_);
  if (alone_) return Lock(std::move(threads), -1);
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return Lock(std::move(threads), lock_fd_);
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError("lock", folder_ + "/lock", errno);
    env_.Sleep(kLockPause, {});
  }
  return Error{Code::kUnavailable, folder_ + "/lock is held by another process",
               "find that process with fuser"};
}

Result<std::optional<FileItem>> FileSinkState::Load(const std::string& name) const {
  const std::string path = folder_ + "/" + name + std::string(kItemEnding);
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::nullopt;
  MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxStateBytes));
  MUSTER_ASSIGN(FileItem item, FileItem::FromJson(text, path));
  return item;
}

Status FileSinkState::Store(const std::string& name, const FileItem& item) const {
  return ReplaceFile(folder_ + "/" + name + std::string(kItemEnding), item.ToJson());
}

Result<std::vector<FileItem>> FileSinkState::LoadAll() const {
  std::vector<FileItem> items;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kItemEnding)) continue;
    MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxStateBytes));
    MUSTER_ASSIGN(FileItem item, FileItem::FromJson(text, path));
    items.push_back(std::move(item));
  }
  if (failed) return FileError("read", folder_, failed.value());
  return items;
}

std::string FileSinkState::PiecePath(const std::string& name, const std::string& writer) const {
  return folder_ + "/" + name + kPieceStart + writer;
}

void FileSinkState::RemovePieces(const std::string& name) const {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    if (entry.path().filename().string().starts_with(name + kPieceStart)) {
      fs::remove(entry.path(), failed);
    }
  }
}

Status FileSinkState::Remove() {
  std::error_code failed;
  fs::remove_all(folder_, failed);
  if (failed) return FileError("remove", folder_, failed.value());
  return {};
}

}  // namespace muster::pipeline
