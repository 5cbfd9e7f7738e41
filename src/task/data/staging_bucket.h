#pragma once

#include <memory>
#include <string>

#include "net/s3.h"

namespace muster::task {

// A staging folder in S3, and a local folder, removed with this object, for files to be uploaded
// and downloaded. Its URL is that of S3Location:
// s3://BUCKET/PREFIX?region=…&endpoint=….
class StagingBucket {
 public:
  static Result<std::shared_ptr<StagingBucket>> Open(const std::string& text);
  ~StagingBucket();
  StagingBucket(const StagingBucket&) = delete;
  StagingBucket& operator=(const StagingBucket&) = delete;

  net::S3Client& client() { return client_; }
  const std::string& folder() const { return folder_; }

  // A folder on this machine for unfinished work by this name. It is not removed with this object.
  Result<std::string> CopyFolder(const std::string& name);

  // kNotFound: no such file.
  Result<std::string> ReadAll(const std::string& name);

  // Downloads a file, unless it is here. kConflict: it has another size or digest.
  Status Bring(const std::string& name, int64_t bytes, const std::string& sha256);

 private:
  StagingBucket(net::S3Location location, std::string folder);

  net::S3Client client_;
  const std::string folder_;
};

}  // namespace muster::task
