#include "task/data/staging_bucket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/file.h"
#include "core/file_output.h"
#include "core/sha256.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChunkBytes = uint64_t{16} << 20;

}  // namespace

StagingBucket::StagingBucket(net::S3Location location, std::string folder)
    : client_(std::move(location), RealEnv()), folder_(std::move(folder)) {}

StagingBucket::~StagingBucket() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Result<std::shared_ptr<StagingBucket>> StagingBucket::Open(const std::string& text) {
  MUSTER_ASSIGN(const Url url, ParseUrl(text));
  MUSTER_ASSIGN(net::S3Location location, net::S3Location::FromUrl(url));
  std::error_code failed;
  std::string folder = (fs::temp_directory_path(failed) / "muster-staging-XXXXXX").string();
  if (failed || mkdtemp(folder.data()) == nullptr) return FileError("making", folder, errno);
  return std::shared_ptr<StagingBucket>(new StagingBucket(std::move(location), std::move(folder)));
}

// The same for every process, and predictable: a folder that another user has made is refused.
Result<std::string> StagingBucket::CopyFolder(const std::string& name) {
  std::error_code failed;
  const std::string temporary = fs::temp_directory_path(failed).string();
  if (failed) return FileError("find", "the temporary folder", failed.value());
  const std::string folder = temporary + "/muster-copy-" + std::to_string(geteuid()) + "-" +
                             Sha256Hex(client_.Place() + name).substr(0, 24);
  MUSTER_TRY(MakePrivateFolders(folder));
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) return FileError("open", folder, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Error{Code::kPermission, folder + " is not a folder of this user alone", "remove it"};
  }
  return folder;
}

Result<std::string> StagingBucket::ReadAll(const std::string& name) {
  MUSTER_ASSIGN(const uint64_t size, client_.Size(name));
  return client_.Read(name, 0, size);
}

Status StagingBucket::Bring(const std::string& name, int64_t bytes, const std::string& sha256) {
  const std::string path = folder_ + "/" + name;
  std::error_code failed;
  if (fs::exists(path, failed)) return {};
  const Error other{Code::kConflict, client_.Place() + name + " is not what its manifest says",
                    "it is being staged again: retry"};
  MUSTER_ASSIGN(const uint64_t size, client_.Size(name));
  if (size != static_cast<uint64_t>(bytes)) return other;
  MUSTER_ASSIGN(const auto output, CreateFileOutput(path + ".partial"));
  Sha256 digest;
  for (uint64_t at = 0; at < size;) {
    MUSTER_ASSIGN(const std::string chunk,
                  client_.Read(name, at, std::min(kChunkBytes, size - at)));
    digest.Add(chunk);
    MUSTER_TRY(output->Append(chunk));
    at += chunk.size();
  }
  MUSTER_TRY(output->Flush());
  if (digest.Hex() != sha256) return other;
  return PublishFile(path + ".partial", path);
}

}  // namespace muster::task
