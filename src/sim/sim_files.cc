#include "sim/sim_files.h"

#include <algorithm>
#include <cerrno>

namespace muster::sim {
namespace {

constexpr nanoseconds kLatency = std::chrono::microseconds(200);
constexpr nanoseconds kLongestFull = std::chrono::seconds(40);
constexpr nanoseconds kLongestUnsynced = std::chrono::milliseconds(200);

}  // namespace

class SimFiles::Calls final : public FileCalls {
 public:
  Calls(SimFiles& files, Env& env) : files_(files), env_(env) {}

  int Open(const std::string& path, bool /*also_read*/) override {
    Name& name = files_.names_[path];
    if (!name.file) name.file = std::make_shared<File>();
    open_[++files_.last_fd_] = name.file;
    return files_.last_fd_;
  }
  int Stat(const std::string& path, Info& info) override {
    const auto found = files_.names_.find(path);
    if (found == files_.names_.end()) return -ENOENT;
    info = InfoOf(*found->second.file);
    return 0;
  }
  int Stat(int fd, Info& info) override {
    info = InfoOf(*open_.at(fd));
    return 0;
  }
  int TryLock(int fd) override {
    File& file = *open_.at(fd);
    if (file.locked_by != 0 && file.locked_by != fd) return -EWOULDBLOCK;
    file.locked_by = fd;
    return 0;
  }
  void Unlock(int fd) override {
    if (open_.at(fd)->locked_by == fd) open_.at(fd)->locked_by = 0;
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
    open_.at(fd)->bytes.append(bytes, 0, taken);
    sim.Note("file: " + std::to_string(taken) + " of " + std::to_string(bytes.size()) +
             " bytes are written");
    files_.MaybeLosePower();
    return static_cast<int64_t>(taken);
  }

  int64_t Read(int fd, char* to, size_t bytes, int64_t offset) override {
    return static_cast<int64_t>(open_.at(fd)->bytes.copy(to, bytes, static_cast<size_t>(offset)));
  }
  int Truncate(int fd, int64_t size) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    open_.at(fd)->bytes.resize(static_cast<size_t>(size));
    return 0;
  }
  int Sync(int fd) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
    open_.at(fd)->synced = open_.at(fd)->bytes;
    return 0;
  }
  int SyncFolderOf(const std::string& /*path*/) override {
    files_.sim_.Pass(files_.sim_.random().UpTo(kLatency));
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

  SimFiles& files_;
  Env& env_;
  std::map<int, std::shared_ptr<File>> open_;
};

std::unique_ptr<FileCalls> SimFiles::CallsOf(Env& env) {
  return std::make_unique<Calls>(*this, env);
}

std::string SimFiles::Content(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? "" : found->second.file->bytes;
}

bool SimFiles::IsFull() {
  if (sim_.Fires(Fault::kReadOnly, 40)) {
    full_until_ = sim_.now() + sim_.random().UpTo(kLongestFull);
    sim_.Lasts(full_until_ - sim_.now());
  }
  return sim_.faults_on() && sim_.now() < full_until_;
}

void SimFiles::MaybeLosePower() {
  if (!sim_.Fires(Fault::kPowerLoss, 20)) return;
  sim_.After(sim_.random().UpTo(kLongestUnsynced), [this] {
    sim_.CutPower();
    LosePower();
  });
}

void SimFiles::LosePower() {
  std::erase_if(names_, [](const auto& entry) { return !entry.second.synced; });
  for (auto& [path, name] : names_) {
    // A process's open file is a different one now, as after a reboot.
    auto file = std::make_shared<File>();
    const std::string& bytes = name.file->bytes;
    file->bytes = file->synced = name.file->synced;
    if (bytes.starts_with(file->synced) && bytes.size() > file->synced.size()) {
      const auto kept = static_cast<size_t>(
          sim_.random().Between(0, static_cast<int64_t>(bytes.size() - file->synced.size())));
      file->bytes = file->synced = bytes.substr(0, file->synced.size() + kept);
      sim_.Sometimes("24 a loss of power takes back letters that were not synced");
    }
    name.file = std::move(file);
  }
}

}  // namespace muster::sim
