#include "sim/sim_files.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster::sim {
namespace {

constexpr nanoseconds kLatency = std::chrono::microseconds(200);
constexpr nanoseconds kLongestFull = std::chrono::seconds(40);
constexpr nanoseconds kLongestUnsynced = std::chrono::milliseconds(200);
constexpr nanoseconds kDyingDisk = std::chrono::seconds(30);

}  // namespace

void SimFiles::File::Append(std::string_view added) {
  if (added.empty()) return;
  dirty.push_back({bytes.size(), bytes.size() + added.size()});
  bytes += added;
}

void SimFiles::File::Truncate(size_t size) {
  bytes.resize(size);
  for (Range& range : dirty) range.end = std::min(range.end, size);
  std::erase_if(dirty, [](const Range& range) { return range.begin >= range.end; });
}

void SimFiles::File::WriteOut(size_t count) {
  for (const Range& range : dirty) {
    const size_t length = std::min(count, range.end - range.begin);
    if (length == 0) break;
    // Unwritten bytes before it are a hole.
    if (disk.size() < range.begin + length) disk.resize(range.begin + length, '\0');
    disk.replace(range.begin, length, bytes, range.begin, length);
    count -= length;
  }
}

size_t SimFiles::File::Unsynced() const {
  size_t count = 0;
  for (const Range& range : dirty) count += range.end - range.begin;
  return count;
}

class SimFiles::Calls final : public FileCalls {
 public:
  Calls(SimFiles& files, Env& env) : files_(files), env_(env) {}

  int Open(const std::string& path, bool /*also_read*/) override {
    Name& name = files_.names_[path];
    if (!name.file) name.file = std::make_shared<File>();
    return Add(name.file);
  }
  int Stat(const std::string& path, Info& info) override {
    const auto found = files_.names_.find(path);
    if (found == files_.names_.end()) return -ENOENT;
    info = InfoOf(*found->second.file);
    return 0;
  }
  int OpenToRewrite(const std::string& path) override {
    const auto found = files_.names_.find(path);
    return found == files_.names_.end() ? -ENOENT : Add(found->second.file);
  }
  int Stat(int fd, Info& info) override {
    info = InfoOf(FileOf(fd));
    return 0;
  }
  int TryLock(int fd) override {
    File& file = FileOf(fd);
    if (file.locked_by != 0 && file.locked_by != fd) return -EWOULDBLOCK;
    file.locked_by = fd;
    return 0;
  }
  void Unlock(int fd) override {
    if (FileOf(fd).locked_by == fd) FileOf(fd).locked_by = 0;
  }

  int64_t Write(int fd, std::string_view bytes) override {
    Simulation& sim = files_.sim_;
    sim.Pass(sim.random().UpTo(kLatency));
    const bool full = files_.IsFull();
    size_t taken = bytes.size();
    if (full || sim.Fires(Fault::kTornWrite, 10)) {
      taken = static_cast<size_t>(sim.random().Next() % bytes.size());
    }
    if (taken == 0 && full) {
      sim.Sometimes("a full disk takes a part of a letter");
      return -ENOSPC;
    }
    FileOf(fd).Append(bytes.substr(0, taken));
    sim.Note("file: " + std::to_string(taken) + " of " + std::to_string(bytes.size()) +
             " bytes are written");
    files_.MaybeLosePower();
    return static_cast<int64_t>(taken);
  }

  // Over what is there: needs no room.
  int64_t WriteAt(int fd, std::string_view bytes, int64_t offset) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    File& file = FileOf(fd);
    const auto begin = static_cast<size_t>(offset);
    file.bytes.replace(begin, bytes.size(), bytes);
    file.dirty.push_back({begin, begin + bytes.size()});
    files_.MaybeLosePower();
    return std::ssize(bytes);
  }

  int64_t Read(int fd, char* to, size_t bytes, int64_t offset) override {
    return static_cast<int64_t>(FileOf(fd).bytes.copy(to, bytes, static_cast<size_t>(offset)));
  }
  int Truncate(int fd, int64_t size) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    FileOf(fd).Truncate(static_cast<size_t>(size));
    return 0;
  }
  int Sync(int fd) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    return files_.Sync(open_.at(fd));
  }
  int SyncFolderOf(const std::string& /*path*/) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    if (files_.sim_.Fires(Fault::kFailedSync, 20)) return -EIO;
    for (auto& [path, name] : files_.names_) name.synced = true;
    return 0;
  }
  void Close(int fd) override {
    Unlock(fd);
    open_.erase(fd);
  }
  Env& env() override { return env_; }

 private:
  static Info InfoOf(const File& file) {
    return {.size = static_cast<int64_t>(file.bytes.size()),
            .device = 1,
            .inode = reinterpret_cast<uintptr_t>(&file),
            .is_regular = true};
  }

  int Add(const std::shared_ptr<File>& file) {
    open_[++files_.last_fd_] = {file, file->failed_syncs};
    return files_.last_fd_;
  }
  File& FileOf(int fd) { return *open_.at(fd).file; }

  SimFiles& files_;
  Env& env_;
  std::map<int, Opened> open_;
};

std::unique_ptr<FileCalls> SimFiles::CallsOf(Env& env) {
  return std::make_unique<Calls>(*this, env);
}

std::string SimFiles::Content(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? "" : found->second.file->bytes;
}

std::string SimFiles::OnDisk(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() || !found->second.synced ? "" : found->second.file->disk;
}

int SimFiles::Sync(Opened& opened) {
  File& file = *opened.file;
  // Failures come in bursts.
  fails_ = sim_.Fires(Fault::kFailedSync, fails_ ? 2 : 8);
  if (fails_) {
    Random& random = sim_.RandomOf(Fault::kFailedSync);
    const auto dirty = static_cast<int64_t>(file.Unsynced());
    file.WriteOut(static_cast<size_t>(random.OneIn(3) ? dirty : random.Between(0, dirty)));
    ++file.failed_syncs;
    // A failing disk may take the machine down.
    if (random.OneIn(3) && sim_.Fires(Fault::kPowerLoss, 2))
      LosePowerAfter(random.UpTo(kDyingDisk));
  } else {
    file.WriteOut(file.Unsynced());
    file.disk.resize(file.bytes.size());
  }
  file.dirty.clear();
  if (opened.failed_syncs == file.failed_syncs) return 0;
  opened.failed_syncs = file.failed_syncs;
  sim_.Note("file: a sync fails");
  sim_.Sometimes("73 a sync fails");
  return -EIO;
}

bool SimFiles::IsFull() {
  if (sim_.Fires(Fault::kReadOnly, 40)) {
    full_until_ = sim_.now() + sim_.random().UpTo(kLongestFull);
    sim_.Lasts(full_until_ - sim_.now());
  }
  return sim_.faults_on() && sim_.now() < full_until_;
}

void SimFiles::MaybeLosePower() {
  if (sim_.Fires(Fault::kPowerLoss, 20)) LosePowerAfter(sim_.random().UpTo(kLongestUnsynced));
}

void SimFiles::LosePowerAfter(nanoseconds delay) {
  sim_.Lasts(delay);
  sim_.After(delay, [this] {
    sim_.CutPower();
    LosePower();
  });
}

void SimFiles::LosePower() {
  std::erase_if(names_, [](const auto& entry) { return !entry.second.synced; });
  for (auto& [path, name] : names_) {
    // A process's open file is a different one now, as after a reboot.
    const std::shared_ptr<File> before = std::exchange(name.file, std::make_shared<File>());
    if (before->failed_syncs > 0 && before->bytes != before->disk)
      sim_.Sometimes("73 a loss of power takes back what a failed sync has not written");
    if (before->bytes.starts_with(before->disk) && before->bytes.size() > before->disk.size()) {
      const auto more = static_cast<int64_t>(before->bytes.size() - before->disk.size());
      const auto kept = static_cast<size_t>(sim_.random().Between(0, more));
      before->disk = before->bytes.substr(0, before->disk.size() + kept);
      sim_.Sometimes("24 a loss of power takes back letters that were not synced");
    }
    name.file->bytes = name.file->disk = before->disk;
  }
}

}  // namespace muster::sim
