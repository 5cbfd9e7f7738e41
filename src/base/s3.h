#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/aws_credentials.h"
#include "base/http.h"
#include "base/url.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// A place in S3 or in what speaks like it.
struct S3Location {
  std::string bucket;
  std::string prefix = {};    // of all keys, with a slash at its end; or empty
  std::string region = {};    // empty: AWS_REGION or AWS_DEFAULT_REGION, else us-east-1
  std::string endpoint = {};  // http(s)://HOST of another server than AWS's
  bool path_style = false;    // the bucket stands in the path, not in the host's name

  // From s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true, whatever its scheme is. An
  // endpoint of one's own is spoken to in path style unless that is switched off. Parameters that
  // are not these are left to the caller.
  static Result<S3Location> FromUrl(const Url& url);
};

// Reads and writes objects below one location, signed with the credentials that AWS's own tools
// would use. What fails for a moment (5xx, a lost connection, "slow down") is tried again with
// growing pauses. Thread-safe. `env` must outlive it.
//
// Errors: kNotFound; kPermission, also for a bucket that is not there but may not be listed;
// kUnavailable when all tries failed; kInvalid when the server does not understand.
class S3Client {
 public:
  S3Client(S3Location location, Env& env);

  // "s3://bucket/prefix"
  const std::string& Place() const { return place_; }

  Result<uint64_t> Size(const std::string& key);

  // Exactly the bytes [offset, offset + length); kCorrupt when the object ends before.
  Result<std::string> Read(const std::string& key, uint64_t offset, uint64_t length);

  // Makes an object of these bytes, or of a file's, in place of another one: whole or not at all,
  // and the same however often it is done.
  Status Write(const std::string& key, const std::string& bytes);
  Status WriteFile(const std::string& key, const std::string& path);

  // One that is not there is as good.
  Status Remove(const std::string& key);

  // The names directly below the location, up to the next slash, in the order of their bytes.
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
  std::string base_url_;  // up to and with the slash before the key
  Env& env_;
  HttpClient http_;
  AwsCredentialChain credentials_;
};

}  // namespace muster
