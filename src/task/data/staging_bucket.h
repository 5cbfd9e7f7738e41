#pragma once

#include <memory>
#include <string>

#include "net/s3.h"

namespace muster::task {

// A staging folder in S3, and a folder on this machine, gone with it, in which its files are made
// and to which they are brought to be read. Its URL is that of S3Location:
// s3://BUCKET/PREFIX?region=…&endpoint=….
class StagingBucket {
 public:
  static Result<std::shared_ptr<StagingBucket>> Open(const std::string& text);
  ~StagingBucket();
  StagingBucket(const StagingBucket&) = delete;
  StagingBucket& operator=(const StagingBucket&) = delete;

  net::S3Client& client() { return client_; }
  const std::string& folder() const { return folder_; }

  // kNotFound: there is none.
  Result<std::string> ReadAll(const std::string& name);

  // Brings a file of this size and digest, unless it is here. kConflict: it is another one.
  Status Bring(const std::string& name, int64_t bytes, const std::string& sha256);

 private:
  StagingBucket(net::S3Location location, std::string folder);

  net::S3Client client_;
  const std::string folder_;
};

}  // namespace muster::task
