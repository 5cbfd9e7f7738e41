#pragma once

#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/http.h"
#include "base/sigv4.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// Where the chain looks. Tests look elsewhere.
struct AwsSurroundings {
  // The value of an environment variable; empty if it is not set.
  std::function<std::string(const char* name)> variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string container_host = "http://169.254.170.2";
  std::string metadata_host = "http://169.254.169.254";
};

// Finds AWS credentials where AWS's own tools do, the first that has any:
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. the profile AWS_PROFILE (or `default`) in ~/.aws/credentials, then in ~/.aws/config; other
//      files by AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE
//   3. the container's endpoint, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or ..._FULL_URI
//   4. the instance's metadata, version 2; not with AWS_EC2_METADATA_DISABLED=true
// Profiles that assume a role, log in by SSO or run a process are refused with a remedy.
//
// Credentials are kept; those that expire are fetched anew 5 minutes before. While that fails, the
// old ones serve as long as they last. What was just fetched is given out even if this machine's
// clock says that it has expired: the clock may be wrong, and AWS knows. Secrets are known to
// Redact before anybody gets them. Thread-safe; one thread fetches, the others wait for it. `env`
// must outlive it.
class AwsCredentialChain {
 public:
  explicit AwsCredentialChain(Env& env, AwsSurroundings surroundings = {});

  // kInvalid: there are none, or what is configured is wrong; says where it looked.
  // kUnavailable: the endpoint that has them does not answer or not sensibly.
  // kPermission: it refuses. kCancelled: on `stop`.
  Result<AwsCredentials> Get(std::stop_token stop = {});

  // Has the next Get look again: for when AWS says that the credentials are not, or no longer,
  // valid. A file may have new ones.
  void Forget();

 private:
  // No value: this place has none, the next may.
  using Found = Result<std::optional<AwsCredentials>>;

  Result<AwsCredentials> Fetch(std::stop_token stop);
  Found FromEnvironment() const;
  Found FromFiles() const;
  Found FromContainer(std::stop_token stop);
  Found FromInstance(std::stop_token stop);
  bool IsDue() const;

  Env& env_;
  const AwsSurroundings at_;
  HttpClient http_;
  std::mutex mutex_;
  std::optional<AwsCredentials> known_;
  MonoTime tried_{};
};

}  // namespace muster
