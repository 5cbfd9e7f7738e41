#include "net/sigv4.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <vector>

#include "core/sha256.h"
#include "core/url.h"

namespace muster::net {
namespace {

std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Timestamp(WallTime now) {
  const time_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Without empty and dot segments, and encoded once more than on the wire.
std::string NormalPath(std::string_view path) {
  std::vector<std::string_view> kept;
  for (const std::string_view segment : Split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string normal;
  for (const std::string_view segment : kept) normal += "/" + PercentEncode(segment);
  if (normal.empty() || path.ends_with('/')) normal += '/';
  return normal;
}

int HexValue(char c) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  const size_t value = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  return value == kDigits.npos ? -1 : static_cast<int>(value);
}

// Re-encodes the way the server does. A % that starts no escape stands for itself.
std::string Reencode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : text[i];
    if (low >= 0) i += 2;
  }
  return PercentEncode(decoded);
}

std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const std::string_view parameter : Split(query, '&')) {
    if (parameter.empty()) continue;
    const size_t equals = std::min(parameter.find('='), parameter.size());
    const std::string_view value = parameter.substr(std::min(equals + 1, parameter.size()));
    parameters.emplace_back(Reencode(parameter.substr(0, equals)), Reencode(value));
  }
  // As pairs: `a` sorts before `a-b`, which `a=` would not.
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    if (!canonical.empty()) canonical += '&';
    canonical += name + "=" + value;
  }
  return canonical;
}

// Trimmed, with runs of white space collapsed.
std::string NormalValue(std::string_view value) {
  std::string normal;
  bool gap = false;
  for (const char c : value) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space && gap && !normal.empty()) normal += ' ';
    if (!space) normal += c;
    gap = space;
  }
  return normal;
}

// As HTTP clients send it: without the scheme's default port.
std::string_view HostHeader(const HttpTarget& target) {
  const std::string_view implied = target.scheme == "https" ? ":443" : ":80";
  std::string_view host = target.authority;
  if (host.ends_with(implied)) host.remove_suffix(implied.size());
  return host;
}

struct CanonicalHeaders {
  std::string lines;
  std::string names;
};

CanonicalHeaders Canonical(const HttpHeaders& headers, const HttpTarget& target) {
  // Proxies may change these.
  static constexpr std::array<std::string_view, 4> kUnsigned = {"expect", "transfer-encoding",
                                                                "user-agent", "x-amzn-trace-id"};
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : headers) {
    const std::string lower = Lowercase(name);
    if (std::find(kUnsigned.begin(), kUnsigned.end(), lower) != kUnsigned.end()) continue;
    const auto [known, is_new] = values.emplace(lower, NormalValue(value));
    if (!is_new) known->second += "," + NormalValue(value);
  }
  values.emplace("host", HostHeader(target));
  CanonicalHeaders canonical;
  for (const auto& [name, value] : values) {
    canonical.lines += name + ":" + value + "\n";
    canonical.names += (canonical.names.empty() ? "" : ";") + name;
  }
  return canonical;
}

void RemoveOwnHeaders(HttpHeaders& headers) {
  static constexpr std::array<std::string_view, 4> kOwn = {
      "Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"};
  std::erase_if(headers, [](const auto& header) {
    return std::any_of(kOwn.begin(), kOwn.end(),
                       [&](std::string_view own) { return SameHeaderName(header.first, own); });
  });
}

}  // namespace

Result<SigV4Texts> SignRequest(HttpRequest& request, const AwsCredentials& credentials,
                               const SigV4Scope& scope, WallTime now) {
  MUSTER_ASSIGN(const HttpTarget target, SplitHttpUrl(request.url));
  const bool is_s3 = scope.service == "s3";
  const std::string timestamp = Timestamp(now);
  const std::string date = timestamp.substr(0, 8);
  const std::string payload = Sha256Hex(request.body);

  RemoveOwnHeaders(request.headers);
  request.headers.emplace_back("X-Amz-Date", timestamp);
  if (!credentials.session_token.empty()) {
    request.headers.emplace_back("X-Amz-Security-Token", credentials.session_token);
  }
  if (is_s3 || scope.service == "aoss") {
    request.headers.emplace_back("X-Amz-Content-Sha256", payload);
  }

  // An S3 key may be `a//../b`, so its path is left alone.
  const std::string path =
      is_s3 && !target.path.empty() ? std::string(target.path) : NormalPath(target.path);
  const CanonicalHeaders headers = Canonical(request.headers, target);
  const std::string credential_scope =
      date + "/" + scope.region + "/" + scope.service + "/aws4_request";

  SigV4Texts texts;
  texts.canonical_request = request.method + "\n" + path + "\n" + CanonicalQuery(target.query) +
                            "\n" + headers.lines + "\n" + headers.names + "\n" + payload;
  texts.string_to_sign = "AWS4-HMAC-SHA256\n" + timestamp + "\n" + credential_scope + "\n" +
                         Sha256Hex(texts.canonical_request);
  std::string key = HmacSha256("AWS4" + credentials.secret_access_key, date);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service),
        std::string_view("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  texts.authorization = "AWS4-HMAC-SHA256 Credential=" + credentials.access_key_id + "/" +
                        credential_scope + ", SignedHeaders=" + headers.names +
                        ", Signature=" + Hex(HmacSha256(key, texts.string_to_sign));
  request.headers.emplace_back("Authorization", texts.authorization);
  return texts;
}

}  // namespace muster::net
