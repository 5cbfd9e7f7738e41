#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/http.h"
#include "net/sigv4.h"

namespace muster::net {

// Where the chain looks; tests override it.
struct AwsSurroundings {
  // The value of an environment variable; empty if unset.
  std::function<std::string(const char* name)> variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string container_host = "http://169.254.170.2";
  std::string metadata_host = "http://169.254.169.254";
};

// Finds AWS credentials where AWS's own tools do; the first that has any wins:
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. the profile AWS_PROFILE (or `default`) in ~/.aws/credentials, then in ~/.aws/config; other
//      files with AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE
//   3. the container's endpoint, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or ..._FULL_URI
//   4. instance metadata, version 2; not with AWS_EC2_METADATA_DISABLED=true
// Profiles that assume a role, use SSO or run a process are rejected with a hint.
//
// Credentials are cached; expiring ones are refreshed 5 minutes early. If that fails, the old ones
// are used until they expire. Freshly fetched credentials are returned even if this machine's clock
// says they have expired: the clock may be wrong, and AWS decides. Secrets are registered with
// Redact before they are returned. Thread-safe; one thread fetches while the others wait. `env`
// must outlive it.
class AwsCredentialChain {
 public:
  explicit AwsCredentialChain(Env& env, AwsSurroundings surroundings = {});

  // kInvalid: none found, or the configuration is wrong; the message says where it looked.
  // kUnavailable: the endpoint does not respond, or not sensibly. kPermission: it refuses.
  // kCancelled: on `stop`.
  Result<AwsCredentials> Get(std::stop_token stop = {});

  // Makes the next Get look again, for when AWS rejects the credentials: a file may contain new
  // ones.
  void Forget();

 private:
  // No value: none here, try the next.
  using Found = Result<std::optional<AwsCredentials>>;

  Result<AwsCredentials> Fetch(std::stop_token stop);
  Found FromEnvironment() const;
  Found FromFiles() const;
  Found FromContainer(std::stop_token stop);
  Found FromInstance(std::stop_token stop);
  bool IsDue() const REQUIRES(mutex_);

  Env& env_;
  const AwsSurroundings at_;
  HttpClient http_;
  Mutex mutex_;
  std::optional<AwsCredentials> known_ GUARDED_BY(mutex_);
  MonoTime tried_ GUARDED_BY(mutex_){};
};

}  // namespace muster::net
