#include "core/file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/descriptor.h"
#include "core/file_calls.h"

namespace muster {

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content;
  // In chunks: a pipe has no size, and most files are far below the limit.
  while (file && content.size() <= max_bytes) {
    size_t before = content.size();
    content.resize(before + 64 * 1024);
    file.read(content.data() + before, static_cast<std::streamsize>(content.size() - before));
    content.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad() || (file.fail() && !file.eof())) {
    if (IsOutOfDescriptors(errno)) return FileError("read", path, errno);
    return Error{Code::kInvalid, "cannot read " + path + ": " + std::strerror(errno),
                 "check the path and the file's permissions"};
  }
  if (content.size() > max_bytes) {
    return Error{Code::kInvalid,
                 path + " is larger than the limit of " + std::to_string(max_bytes) + " bytes",
                 "check that it is the right file"};
  }
  return content;
}

Error FileError(std::string_view doing, const std::string& path, int reason) {
  Error error{Code::kUnavailable,
              "cannot " + std::string(doing) + " " + path + ": " + std::strerror(reason)};
  if (IsOutOfDescriptors(reason)) return OutOfDescriptors(std::move(error.message));
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      error.code = Code::kFull;
      error.hint = "free some space, then run it again";
      break;
    case EROFS:
      error.code = Code::kReadOnly;
      break;
    case EACCES:
    case EPERM:
    case ENOTDIR:
    case EISDIR:
      error.code = Code::kPermission;
      error.hint = "check the path and its permissions";
      break;
    case EEXIST:
      error.code = Code::kConflict;
      break;
    case ENOENT:
      error.code = Code::kNotFound;
      error.hint = "check the path";
      break;
    default:
      break;
  }
  return error;
}

Status SyncFolderOf(const std::string& path) {
  const int synced = SystemFileCalls().SyncFolderOf(path);
  if (synced != 0) return FileError("sync the folder of", path, -synced);
  return {};
}

Status MakePrivateFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return FileError("create", folder, errno);
    }
    if (slash == std::string::npos) break;
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return FileError("create", path, errno);
  if (!S_ISDIR(info.st_mode)) return FileError("create", path, ENOTDIR);
  return {};
}

}  // namespace muster
