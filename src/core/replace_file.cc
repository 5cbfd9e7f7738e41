#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>

#include "core/descriptor.h"
#include "core/file.h"
#include "core/file_output.h"

namespace muster {
namespace {

constexpr char kFresh[] = ".muster-new";
constexpr int kMaxLinks = 40;  // as the kernel
constexpr int kMaxTries = 20;  // of processes that replace the same file at the same time

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// Its files are the kernel's, and its links are open files: /dev/stdout is one of them.
bool IsOfProcesses(const std::string& path) {
  struct statfs folder {};
  return statfs(FolderOf(path).c_str(), &folder) == 0 && folder.f_type == PROC_SUPER_MAGIC;
}

// The file behind symbolic links, which need not exist. None: it must be written directly.
Result<std::optional<std::string>> Replaceable(std::string path) {
  for (int links = 0; links < kMaxLinks; ++links) {
    if (IsOfProcesses(path)) return std::optional<std::string>();
    std::array<char, PATH_MAX> link{};
    const ssize_t size = readlink(path.c_str(), link.data(), link.size());
    if (size < 0) {
      struct stat there {};
      const bool is_special = stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode);
      return is_special ? std::optional<std::string>() : std::optional(std::move(path));
    }
    const std::string to(link.data(), static_cast<size_t>(size));
    path = to.starts_with('/') ? to : FolderOf(path) + "/" + to;
  }
  return FileError("follow", path, ELOOP);
}

// Appends, so that it comes after what a shell's `>>` keeps.
Status WriteDirectly(const std::string& path, std::string_view content) {
  const Descriptor fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (fd.get() < 0) return FileError("open", path, errno);
  return WriteAll(fd.get(), content, path);
}

Status WriteFresh(int fd, const std::string& path, std::string_view content,
                  std::optional<mode_t> mode) {
  if (mode && fchmod(fd, *mode) != 0) return FileError("protect", path, errno);
  MUSTER_TRY(WriteAll(fd, content, path));
  if (fsync(fd) != 0) return FileError("sync", path, errno);
  return {};
}

// Whether the file has not been removed by another process that replaces the same one.
bool IsAt(const std::string& path, int fd) {
  struct stat opened {};
  struct stat there {};
  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

}  // namespace

Status ReplaceFile(const std::string& path, std::string_view content, FileAccess access) {
  MUSTER_ASSIGN(const std::optional<std::string> target, Replaceable(path));
  if (!target) return WriteDirectly(path, content);
  std::optional<mode_t> mode;
  if (struct stat there{}; stat(target->c_str(), &there) == 0) mode = there.st_mode & 0777;
  if (access == FileAccess::kOwner) mode = 0600;
  const std::string fresh = *target + kFresh;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    // Never another's file or link of that name.
    const Descriptor fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             access == FileAccess::kOwner ? 0600 : 0644));
    if (fd.get() < 0 && errno != EEXIST) return FileError("create", fresh, errno);
    if (fd.get() < 0) {
      // Left by a process that was killed, or about to be written by one that starts again then.
      if (unlink(fresh.c_str()) != 0 && errno != ENOENT) return FileError("remove", fresh, errno);
      continue;
    }
    Status written = WriteFresh(fd.get(), fresh, content, mode);
    if (written && !IsAt(fresh, fd.get())) continue;
    if (written) written = PublishFile(fresh, *target);
    if (written || written.error().code != Code::kNotFound) {
      if (!written) unlink(fresh.c_str());
      return written;
    }
  }
  return Error{Code::kConflict, "other processes keep replacing " + *target};
}

}  // namespace muster
