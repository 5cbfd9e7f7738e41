#include "pipeline/file/file_sink_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/record_fields.h"
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
constexpr char kLock[] = "/lock";
// An item's name never contains `#`.
constexpr char kPieceStart[] = "#";

constexpr EnumNames<FileItem::Phase, 3> kPhases{{{
    {FileItem::Phase::kOpen, "open"},
    {FileItem::Phase::kSealed, "sealed"},
    {FileItem::Phase::kFinished, "finished"},
}}};

void PutProgress(const FileItem& item, Json& json, std::string_view name) {
  json[name] = item.progress.ToString();
}
void TakeProgress(JsonFields& fields, FileItem& item, std::string_view name) {
  std::string text;
  fields.Need(name, text);
  auto progress = Progress::Parse(text);
  if (!progress) return fields.Mistake(progress.error().message);
  item.progress = *std::move(progress);
}

void PutPieces(const FileItem& item, Json& json, std::string_view name) {
  json[name] = Json::array();
  for (const FilePiece& piece : item.pieces)
    json[name].push_back({{"file", piece.path}, {"bytes", piece.bytes}});
}
void TakePieces(JsonFields& fields, FileItem& item, std::string_view name) {
  std::vector<Json> pieces;
  fields.Need(name, pieces);
  for (Json& json : pieces) {
    JsonFields piece(std::move(json));
    FilePiece& added = item.pieces.emplace_back();
    piece.Need("file", added.path).Need("bytes", added.bytes);
    if (!piece.good()) fields.Mistake("its pieces are damaged");
  }
}

constexpr RecordFormat kFormat{"file sink", 1};  // of all files in the folder

constexpr RecordTable<FileItem, 9> kItemTable{
    kFormat,
    {{Required<FileItem, &FileItem::item>("item"),
      Required<FileItem, &FileItem::incarnation>("incarnation"),
      Required<FileItem, &FileItem::epoch>("epoch"),
      Required<FileItem, &FileItem::holder>("holder"),
      Required<FileItem, &FileItem::writer>("writer"),
      Named<FileItem, &FileItem::phase, kPhases>("phase"),
      {"progress", PutProgress, TakeProgress},
      {"pieces", PutPieces, TakePieces},
      Required<FileItem, &FileItem::output>("output")}}};

// Which run a collection belongs to.
struct FileOwner {
  std::string run = {};
  std::string incarnation = {};
  bool alone = false;
};

constexpr RecordTable<FileOwner, 3> kOwnerTable{
    kFormat,
    {{Field<FileOwner, &FileOwner::run>("run"),
      Field<FileOwner, &FileOwner::incarnation>("incarnation"),
      Field<FileOwner, &FileOwner::alone>("alone")}}};

// Output of another run must not be touched.
Error NotOurs(const std::string& output, std::string_view why) {
  return {Code::kConflict, output + " " + std::string(why),
          "remove it if it is not needed, or name another target"};
}

// What to do about a file of ours that cannot be read, unless a newer version wrote it.
Error Damaged(Error error) {
  if (!IsNewer(error))
    error.hint = "remove the collection's files and their state, and migrate it again";
  return error;
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

bool IsSameFile(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

Result<Descriptor> OpenLock(const std::string& path) {
  Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (fd.get() < 0) return FileError("open", path, errno);
  return fd;
}

// A standalone run keeps its lock until it exits, so that its next owner knows that the run is
// over. The first collection's lock file is the run's; the others become links to it.
Status LockForRun(const std::string& path, const std::string& output,
                  std::shared_ptr<FileRunLock>& held) {
  const bool is_first = !held || !IsSameFile(held->fd.get(), held->path);
  if (!is_first && link(held->path.c_str(), path.c_str()) == 0) return {};
  if (!is_first && IsSameFile(held->fd.get(), path)) return {};
  MUSTER_ASSIGN(Descriptor fd, OpenLock(path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !IsSameFile(fd.get(), path)) {
    return NotOurs(output, "is being written by another migration");
  }
  // What an earlier run left is replaced while it is locked.
  const std::string fresh = path + ".new";
  if (!is_first && link(held->path.c_str(), fresh.c_str()) == 0 &&
      rename(fresh.c_str(), path.c_str()) == 0) {
    return {};
  }
  held = std::make_shared<FileRunLock>(FileRunLock{path, std::move(fd)});
  return {};
}

}  // namespace

std::string FileItem::ToJson() const { return ToJsonText(kItemTable.ToJson(*this)); }

Result<FileItem> FileItem::FromJson(std::string_view text, const std::string& origin) {
  auto item = kItemTable.Parse(text, origin);
  return item ? std::move(item) : Damaged(item.error());
}

Result<std::unique_ptr<FileSinkState>> FileSinkState::Open(const std::string& folder,
                                                           const std::string& output,
                                                           const Fence& fence,
                                                           std::shared_ptr<FileRunLock>& held,
                                                           Env& env) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return FileError("create", folder, failed.value());
  std::shared_ptr<FileRunLock> run_lock;
  if (fence.alone) {
    MUSTER_TRY(LockForRun(folder + kLock, output, held));
    run_lock = held;
  }
  std::unique_ptr<FileSinkState> state(new FileSinkState(folder, std::move(run_lock), env));
  MUSTER_ASSIGN(const Lock lock, state->Acquire());
  MUSTER_TRY(state->Claim(output, fence));
  return state;
}

Result<std::unique_ptr<FileSinkState>> FileSinkState::Existing(const std::string& folder,
                                                               Env& env) {
  std::error_code failed;
  if (!fs::exists(folder + kLock, failed)) {
    if (failed) return FileError("open", folder + kLock, failed.value());
    return nullptr;
  }
  return std::unique_ptr<FileSinkState>(new FileSinkState(folder, nullptr, env));
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
    MUSTER_ASSIGN(const Json json, ReadJsonFile(path));
    const auto read = kOwnerTable.Read(json, path);
    if (!read) return Damaged(read.error());
    const FileOwner& owner = *read;
    const bool same_run = owner.run == fence.run;
    if (!same_run && alone_ && owner.alone) {
      MUSTER_TRY(RemoveLeftovers());
    } else if (!same_run) {
      return NotOurs(output, "was written by another run, '" + owner.run + "'");
    } else if (owner.incarnation != fence.incarnation && !fence.adopts) {
      return Error{
          Code::kConflict,
          output + " was written by another incarnation of the run '" + fence.run + "'",
          "start its workers with --new-incarnation to continue from what is there; to start "
          "over, remove it and name the run differently"};
    }
  }
  if (!fs::exists(path, failed) && HasForeignFiles(output, folder_)) {
    fs::remove_all(folder_, failed);  // nothing of ours is left
    return NotOurs(output, "exists, and was not written by a migration that can continue");
  }
  const FileOwner owner{.run = fence.run, .incarnation = fence.incarnation, .alone = fence.alone};
  return ReplaceFile(path, ToJsonText(kOwnerTable.ToJson(owner)));
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
  if (alone_) return Lock(std::move(threads), Descriptor());
  const std::string path = folder_ + kLock;
  MUSTER_ASSIGN(Descriptor file, OpenLock(path));
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Lock(std::move(threads), std::move(file));
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError("lock", path, errno);
    env_.Sleep(kLockPause, {});
  }
  return Error{Code::kUnavailable, path + " is held by another process",
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
