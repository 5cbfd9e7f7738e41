#include "net/aws_credentials.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/secrets.h"
#include "core/url.h"

namespace muster::net {
namespace {

using namespace std::chrono_literals;

constexpr auto kRefreshBefore = 5min;
constexpr auto kRetryAfter = 30s;  // limits retries if the endpoint fails or the clock is wrong
constexpr size_t kMaxFileBytes = 1024 * 1024;
constexpr size_t kMaxAnswerBytes = 64 * 1024;

using Section = std::map<std::string, std::string>;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The settings of one section; none if the file lacks it. Indented lines are nested settings, which
// are not used here.
std::optional<Section> ReadSection(std::string_view text, std::string_view wanted) {
  std::optional<Section> section;
  bool inside = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || std::string_view("#; \t\r").find(line[0]) != std::string_view::npos) {
      continue;
    }
    if (line[0] == '[') {
      inside = Trim(line.substr(1, line.find(']') - 1)) == wanted;
      if (inside && !section) section.emplace();
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == line.npos) continue;
    (*section)[std::string(Trim(line.substr(0, equals)))] = Trim(line.substr(equals + 1));
  }
  return section;
}

std::string ValueOf(const Section& section, const char* name) {
  const auto found = section.find(name);
  return found == section.end() ? "" : found->second;
}

// 2026-02-28T23:59:59Z, optionally with a fraction.
std::optional<WallTime> ParseIsoTime(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || !text.ends_with('Z')) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

AwsCredentials Remembered(AwsCredentials credentials) {
  RememberSecret(credentials.secret_access_key);
  RememberSecret(credentials.session_token);
  return credentials;
}

// The format shared by container and instance endpoints. Messages never quote the response: it
// contains secrets.
Result<AwsCredentials> ParseAnswer(const std::string& body, const std::string& place) {
  const auto parsed = ParseJson(body, place);
  const auto text = [&](const char* name) -> std::string {
    if (!parsed || !parsed->is_object()) return "";
    const auto found = parsed->find(name);
    return found != parsed->end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string expiration = text("Expiration");
  AwsCredentials credentials = Remembered(
      {text("AccessKeyId"), text("SecretAccessKey"), text("Token"), ParseIsoTime(expiration)});
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty() ||
      (!expiration.empty() && !credentials.expires)) {
    return Error{Code::kUnavailable,
                 "the response of " + place + " contains no valid AWS credentials",
                 "check the role that is attached"};
  }
  return credentials;
}

HttpRequest MetadataRequest(std::string method, std::string url, HttpHeaders headers) {
  return {.method = std::move(method),
          .url = std::move(url),
          .headers = std::move(headers),
          .connect_timeout = 1s,
          .timeout = 2s,
          .max_response_bytes = kMaxAnswerBytes};
}

Error Refusal(const std::string& place, const HttpResponse& response) {
  const bool refused = response.status == 401 || response.status == 403;
  return Error{refused ? Code::kPermission : Code::kUnavailable,
               place + " answered with status " + std::to_string(response.status),
               "check the role that is attached, and whether the endpoint is enabled"};
}

// Without TLS, credentials and the token for them may only go to this machine and to the ECS and
// EKS addresses.
bool IsAllowedWithoutTls(std::string_view host) {
  static constexpr std::array<std::string_view, 5> kHosts = {"localhost", "::1", "169.254.170.2",
                                                             "169.254.170.23", "fd00:ec2::23"};
  const bool loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
  return loopback || std::find(kHosts.begin(), kHosts.end(), host) != kHosts.end();
}

}  // namespace

AwsCredentialChain::AwsCredentialChain(Env& env, AwsSurroundings surroundings)
    : env_(env),
      at_(std::move(surroundings)),
      // Requests to the machine's own endpoint must not go through a proxy.
      http_(HttpOptions{.use_proxy = false}) {}

void AwsCredentialChain::Forget() {
  const MutexLock lock(mutex_);
  known_.reset();
}

bool AwsCredentialChain::IsDue() const {
  if (!known_) return true;
  if (!known_->expires || env_.WallNow() < *known_->expires - kRefreshBefore) return false;
  return env_.MonoNow() - tried_ >= kRetryAfter;
}

Result<AwsCredentials> AwsCredentialChain::Get(std::stop_token stop) {
  const MutexLock lock(mutex_);
  if (!IsDue()) return *known_;
  tried_ = env_.MonoNow();
  Result<AwsCredentials> fetched = Fetch(std::move(stop));
  if (fetched) {
    known_ = *fetched;
    return fetched;
  }
  if (!known_ || env_.WallNow() >= *known_->expires) {
    known_.reset();
    return fetched;
  }
  Log(Level::kWarning, "AWS credentials could not be renewed; still using the old ones",
      {{"error", fetched.error().ToString()}});
  return *known_;
}

Result<AwsCredentials> AwsCredentialChain::Fetch(std::stop_token stop) {
  Found found = FromEnvironment();
  if (found && !*found) found = FromFiles();
  if (found && !*found) found = FromContainer(stop);
  if (found && !*found) found = FromInstance(stop);
  if (!found) return found.error();
  if (*found) return **found;
  return Error{
      Code::kInvalid,
      "no AWS credentials in the environment, the AWS files, the container or the instance",
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run `aws configure`, or attach a "
      "role"};
}

AwsCredentialChain::Found AwsCredentialChain::FromEnvironment() const {
  const std::string id = at_.variable("AWS_ACCESS_KEY_ID");
  const std::string secret = at_.variable("AWS_SECRET_ACCESS_KEY");
  if (id.empty() && secret.empty()) return std::nullopt;
  RememberSecret(secret);
  if (id.empty() || secret.empty()) {
    return Error{Code::kInvalid, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set",
                 "set both or neither"};
  }
  return Remembered({id, secret, at_.variable("AWS_SESSION_TOKEN")});
}

AwsCredentialChain::Found AwsCredentialChain::FromFiles() const {
  const auto path_of = [&](const char* variable, const char* name) {
    const std::string path = at_.variable(variable);
    const std::string home = at_.variable("HOME");
    return path.empty() && !home.empty() ? home + "/.aws/" + name : path;
  };
  const std::string named = at_.variable("AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  const std::array<std::pair<std::string, std::string>, 3> places = {
      {{path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile},
       {path_of("AWS_CONFIG_FILE", "config"), "profile " + profile},
       {path_of("AWS_CONFIG_FILE", "config"), profile == "default" ? profile : ""}}};
  bool exists = false;
  for (const auto& [path, section_name] : places) {
    if (path.empty() || section_name.empty() || !std::filesystem::exists(path)) continue;
    MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxFileBytes));
    const std::optional<Section> section = ReadSection(text, section_name);
    if (!section) continue;
    exists = true;
    const std::string id = ValueOf(*section, "aws_access_key_id");
    const std::string secret = ValueOf(*section, "aws_secret_access_key");
    RememberSecret(secret);
    const std::string where = "section [" + section_name + "] of " + path;
    if (id.empty() != secret.empty()) {
      return Error{Code::kInvalid,
                   where + " has only one of aws_access_key_id and aws_secret_access_key",
                   "write both or neither"};
    }
    if (!id.empty()) return Remembered({id, secret, ValueOf(*section, "aws_session_token")});
    for (const char* other : {"role_arn", "sso_session", "sso_start_url", "credential_process"}) {
      if (section->contains(other)) {
        return Error{Code::kInvalid, where + " uses " + other + ", which is not supported",
                     "run eval \"$(aws configure export-credentials --format env)\" first"};
      }
    }
  }
  // Silently falling back to the machine's role would be surprising.
  if (!exists && !named.empty()) {
    return Error{Code::kInvalid,
                 "AWS_PROFILE names " + named + ", and neither " + places[0].first + " nor " +
                     places[1].first + " has that profile",
                 "correct or unset AWS_PROFILE"};
  }
  return std::nullopt;
}

AwsCredentialChain::Found AwsCredentialChain::FromContainer(std::stop_token stop) {
  const std::string place = "the container's credentials endpoint";
  std::string url = at_.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = at_.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
      !path.empty()) {
    url = at_.container_host + path;
  } else if (url.empty()) {
    return std::nullopt;
  } else {
    const auto parsed = ParseUrl(url);
    if (!parsed) return parsed.error().Within("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (parsed->scheme != "https" && !IsAllowedWithoutTls(parsed->host)) {
      return Error{Code::kInvalid,
                   "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host " + parsed->host +
                       ", which is not trusted without TLS",
                   "use https, or an address of this machine, of ECS or of EKS"};
    }
  }
  std::string token = at_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  // Read each time: EKS rotates the file every few hours.
  if (const std::string path = at_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !path.empty()) {
    MUSTER_ASSIGN(token, ReadFile(path, kMaxAnswerBytes));
    while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  }
  RememberSecret(token);
  HttpHeaders headers;
  if (!token.empty()) headers.emplace_back("Authorization", token);
  const auto response = http_.Send(MetadataRequest("GET", url, std::move(headers)), stop);
  if (!response) return response.error().Within(place);
  if (response->status != 200) return Refusal(place, *response);
  MUSTER_ASSIGN(auto credentials, ParseAnswer(response->body, place));
  return credentials;
}

AwsCredentialChain::Found AwsCredentialChain::FromInstance(std::stop_token stop) {
  if (at_.variable("AWS_EC2_METADATA_DISABLED") == "true") return std::nullopt;
  const std::string place = "the instance metadata service";
  std::string host = at_.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (host.empty()) host = at_.metadata_host;
  while (host.ends_with('/')) host.pop_back();

  const auto token =
      http_.Send(MetadataRequest("PUT", host + "/latest/api/token",
                                 {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}),
                 stop);
  // Nothing listens there: not an EC2 instance.
  if (!token && token.error().code == Code::kUnavailable) return std::nullopt;
  if (!token && token.error().code == Code::kUnknownOutcome) {
    return Error{Code::kUnavailable,
                 place + " accepted the request for a token but did not respond",
                 "in a container, raise the instance's metadata hop limit to 2; or set "
                 "AWS_EC2_METADATA_DISABLED=true if this is not an EC2 instance"};
  }
  if (!token) return token.error().Within(place);
  if (token->status != 200) return Refusal(place, *token);
  RememberSecret(token->body);

  const std::string path = host + "/latest/meta-data/iam/security-credentials/";
  const HttpHeaders headers = {{"X-aws-ec2-metadata-token", token->body}};
  const auto role = http_.Send(MetadataRequest("GET", path, headers), stop);
  if (!role) return role.error().Within(place);
  if (role->status == 404) return std::nullopt;  // an instance without a role
  if (role->status != 200) return Refusal(place, *role);
  const std::string name(Trim(role->body.substr(0, role->body.find('\n'))));
  if (name.empty()) return std::nullopt;

  const auto response =
      http_.Send(MetadataRequest("GET", path + PercentEncode(name), headers), stop);
  if (!response) return response.error().Within(place);
  if (response->status != 200) return Refusal(place, *response);
  MUSTER_ASSIGN(auto credentials, ParseAnswer(response->body, place));
  return credentials;
}

}  // namespace muster::net
