#include "lucene/blobs.h"
#include "net/s3.h"

namespace muster::lucene {
namespace {

// A request takes tens of milliseconds, whatever its size.
constexpr uint64_t kReadAhead = 4 * 1024 * 1024;

net::S3Location RootOf(net::S3Location location) {
  location.prefix.clear();
  return location;
}

class S3Blobs : public Blobs {
 public:
  S3Blobs(const net::S3Location& location, Env& env)
      : base_path_(location.prefix), client_(location, env), bucket_(RootOf(location), env) {}

  const std::string& name() const override { return client_.Place(); }
  std::string base_path() const override { return base_path_; }
  uint64_t read_ahead() const override { return kReadAhead; }
  Result<std::vector<std::string>> ListRoot() const override { return client_.List(); }
  Result<uint64_t> Size(const std::string& path) const override {
    return path.starts_with('/') ? bucket_.Size(path.substr(1)) : client_.Size(path);
  }
  Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                  std::string& into) const override {
    MUSTER_ASSIGN(into, path.starts_with('/') ? bucket_.Read(path.substr(1), offset, length)
                                              : client_.Read(path, offset, length));
    return {};
  }

 private:
  const std::string base_path_;
  mutable net::S3Client client_;  // thread-safe
  mutable net::S3Client bucket_;
};

}  // namespace

std::unique_ptr<Blobs> OpenBucket(const net::S3Location& location, Env& env) {
  return std::make_unique<S3Blobs>(location, env);
}

}  // namespace muster::lucene
