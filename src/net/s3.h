#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/url.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/aws_credentials.h"
#include "net/http.h"

namespace muster::net {

// A location in S3 or a compatible service.
struct S3Location {
  std::string bucket;
  std::string prefix = {};    // of all keys, ending in a slash; or empty
  std::string region = {};    // empty: AWS_REGION or AWS_DEFAULT_REGION, else us-east-1
  std::string endpoint = {};  // http(s)://HOST of a server other than AWS's
  bool path_style = false;    // the bucket is in the path, not in the host name

  // From s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true, whatever its scheme. A custom
  // endpoint uses path style unless switched off. Other parameters are left to the caller.
  static Result<S3Location> FromUrl(const Url& url);
};

// Reads and writes objects below one location, with the credentials AWS's own tools would use.
// Transient failures (5xx, a lost connection, "slow down") are retried with backoff. Thread-safe.
// `env` must outlive it.
//
// Errors: kNotFound; kPermission, also for a missing bucket that may not be listed; kUnavailable
// when all retries failed; kInvalid when the server rejects the request.
class S3Client {
 public:
  S3Client(S3Location location, Env& env);

  // "s3://bucket/prefix"
  const std::string& Place() const { return place_; }

  Result<uint64_t> Size(const std::string& key);

  // Exactly the bytes [offset, offset + length); kCorrupt if the object is shorter.
  Result<std::string> Read(const std::string& key, uint64_t offset, uint64_t length);

  // Writes an object from these bytes, or from a file, replacing any existing one. Atomic and
  // idempotent.
  Status Write(const std::string& key, const std::string& bytes);
  Status WriteFile(const std::string& key, const std::string& path);

  // A missing object is not an error.
  Status Remove(const std::string& key);

  // The names directly below the location, up to the next slash, in byte order.
  Result<std::vector<std::string>> List();

 private:
  Result<HttpResponse> Send(const std::string& method, const std::string& key,
                            const std::string& query, const HttpHeaders& headers, size_t max_bytes,
                            const std::string& body = {});
  Status WriteParts(const std::string& key, std::istream& file, size_t part_bytes,
                    const std::string& upload);
  Error ErrorOf(const std::string& what, const HttpResponse& response) const;

  const S3Location location_;
  const std::string place_;
  std::string base_url_;  // up to and including the slash before the key
  Env& env_;
  HttpClient http_;
  AwsCredentialChain credentials_;
};

}  // namespace muster::net
