#include "base/s3.h"
#include "lucene/blobs.h"

namespace muster::lucene {
namespace {

class S3Blobs : public Blobs {
 public:
  S3Blobs(S3Location location, Env& env) : client_(std::move(location), env) {}

  const std::string& name() const override { return client_.Place(); }
  Result<std::vector<std::string>> ListRoot() const override { return client_.List(); }
  Result<uint64_t> Size(const std::string& path) const override { return client_.Size(path); }
  Result<std::string> Read(const std::string& path, uint64_t offset,
                           uint64_t length) const override {
    return client_.Read(path, offset, length);
  }

 private:
  mutable S3Client client_;  // thread-safe
};

}  // namespace

std::unique_ptr<Blobs> OpenBucket(S3Location location, Env& env) {
  return std::make_unique<S3Blobs>(std::move(location), env);
}

}  // namespace muster::lucene
