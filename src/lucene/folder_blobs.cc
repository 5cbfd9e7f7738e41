#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/mutex.h"
#include "lucene/blobs.h"

namespace muster::lucene {
namespace {

namespace fs = std::filesystem;

Error FileError(const std::string& path, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Error{Code::kNotFound, path + ": " + reason};
    case EACCES:
    case EPERM:
      return Error{Code::kPermission, path + ": " + reason};
    default:
      return Error{Code::kUnavailable, path + ": " + reason};
  }
}

constexpr uint64_t kReadAhead = 256 * 1024;
// A shard is read from one or two files at a time, and few threads share a folder.
constexpr size_t kMostOpen = 32;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Recently read files, kept open. Blobs never change under their name.
class OpenFiles {
 public:
  Result<std::shared_ptr<const Descriptor>> Get(const std::string& path) {
    const MutexLock lock(mutex_);
    for (const auto& [name, file] : files_) {
      if (name == path) return file;
    }
    auto file = std::make_shared<const Descriptor>(path);
    if (file->number() < 0) return FileError(path, errno);
    if (files_.size() == kMostOpen) files_.pop_back();
    files_.emplace_front(path, file);
    return file;
  }

 private:
  Mutex mutex_;
  // Newest first.
  std::deque<std::pair<std::string, std::shared_ptr<const Descriptor>>> files_ GUARDED_BY(mutex_);
};

class FolderBlobs : public Blobs {
 public:
  explicit FolderBlobs(std::string folder) : folder_(std::move(folder)) {}

  const std::string& name() const override { return folder_; }
  uint64_t read_ahead() const override { return kReadAhead; }

  Result<std::vector<std::string>> ListRoot() const override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return FileError(folder_, error.value());
    return names;
  }

  Result<uint64_t> Size(const std::string& path) const override {
    const std::string full = folder_ + "/" + path;
    struct stat found = {};
    if (stat(full.c_str(), &found) != 0) return FileError(full, errno);
    if (!S_ISREG(found.st_mode)) return Error{Code::kNotFound, full + ": not a file"};
    return static_cast<uint64_t>(found.st_size);
  }

  Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                  std::string& into) const override {
    const std::string full = folder_ + "/" + path;
    MUSTER_ASSIGN(const auto file, files_.Get(full));
    into.resize(length);
    size_t done = 0;
    while (done < length) {
      const ssize_t got = pread(file->number(), into.data() + done, length - done,
                                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError(full, errno);
      if (got == 0) {
        return Error{Code::kCorrupt, full + ": ends at byte " + std::to_string(offset + done) +
                                         ", before the " + std::to_string(length) +
                                         " bytes that should be at " + std::to_string(offset)};
      }
      done += static_cast<size_t>(got);
    }
    return {};
  }

 private:
  std::string folder_;
  mutable OpenFiles files_;  // thread-safe
};

}  // namespace

Result<std::unique_ptr<Blobs>> OpenFolder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{Code::kNotFound, folder + ": no such folder",
                 "name the folder of a snapshot repository: the one with index-N and indices/"};
  }
  return std::unique_ptr<Blobs>(std::make_unique<FolderBlobs>(folder));
}

Result<std::string> ReadWhole(const Blobs& blobs, const std::string& path, uint64_t max_bytes) {
  MUSTER_ASSIGN(const uint64_t size, blobs.Size(path));
  if (size > max_bytes) {
    return Error{Code::kIncompatible, blobs.name() + "/" + path + ": " + std::to_string(size) +
                                          " bytes are more than " + std::to_string(max_bytes)};
  }
  std::string bytes;
  MUSTER_TRY(blobs.ReadInto(path, 0, size, bytes));
  return bytes;
}

}  // namespace muster::lucene
