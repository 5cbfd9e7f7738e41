#include "net/s3.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "core/backoff.h"
#include "core/secrets.h"

namespace muster::net {
namespace {

using std::chrono::milliseconds;

constexpr int kTries = 6;
constexpr milliseconds kFirstPause{100};
constexpr size_t kMaxListBytes = 8 * 1024 * 1024;
constexpr int kMaxPages = 1'000;
// AWS allows 10,000 parts of at least 5 MiB; each is held in memory.
constexpr size_t kPartBytes = 16 * 1024 * 1024;
constexpr size_t kMaxParts = 10'000;

std::string EncodePath(std::string_view key) {
  std::string path;
  for (const char c : key) path += c == '/' ? "/" : PercentEncode(std::string_view(&c, 1));
  return path;
}

// The text between the next <tag> and </tag> after `from`; advances `from` past it.
std::optional<std::string_view> Element(std::string_view xml, std::string_view tag, size_t& from) {
  const std::string open = "<" + std::string(tag) + ">";
  const std::string close = "</" + std::string(tag) + ">";
  const size_t start = xml.find(open, from);
  if (start == xml.npos) return std::nullopt;
  const size_t end = xml.find(close, start);
  if (end == xml.npos) return std::nullopt;
  from = end + close.size();
  return xml.substr(start + open.size(), end - start - open.size());
}

std::optional<std::string_view> Element(std::string_view xml, std::string_view tag) {
  size_t from = 0;
  return Element(xml, tag, from);
}

// Keys are listed with encoding-type=url, so XML escaping does not matter.
Result<std::string> DecodeKey(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      key += ' ';
    } else if (text[i] == '%') {
      int value = 0;
      const char* const digits = text.data() + i + 1;
      if (i + 2 >= text.size() ||
          std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
        return Error{Code::kCorrupt, "the listing contains a key that cannot be decoded"};
      }
      key += static_cast<char>(value);
      i += 2;
    } else {
      key += text[i];
    }
  }
  return key;
}

std::string RegionOf(const S3Location& location) {
  if (!location.region.empty()) return location.region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "us-east-1";
}

// Sent with status 400, as wrong requests are.
bool HasExpired(std::string_view code) {
  return code == "ExpiredToken" || code == "TokenRefreshRequired" || code == "InvalidToken";
}

bool IsTransient(const HttpResponse& response) {
  return response.status >= 500 || response.status == 429;
}

}  // namespace

Result<S3Location> S3Location::FromUrl(const Url& url) {
  S3Location location{.bucket = url.host};
  if (location.bucket.empty()) {
    return Error{Code::kInvalid, "the URL names no bucket", "write s3://BUCKET/PREFIX"};
  }
  if (!url.user.empty() || !url.password.empty()) {
    return Error{Code::kInvalid, "the URL of a bucket contains a user name or password",
                 "supply credentials as for the AWS CLI: by environment, file or role"};
  }
  location.prefix = url.path.empty() ? "" : url.path.substr(1);
  if (!location.prefix.empty() && !location.prefix.ends_with('/')) location.prefix += '/';
  location.region = url.Param("region").value_or("");
  location.endpoint = url.Param("endpoint").value_or("");
  location.path_style = !location.endpoint.empty();
  if (!location.endpoint.empty()) {
    while (location.endpoint.ends_with('/')) location.endpoint.pop_back();
    MUSTER_TRY(SplitHttpUrl(location.endpoint));
  }
  if (const auto style = url.Param("path_style")) {
    if (*style != "true" && *style != "false") {
      return Error{Code::kInvalid, "path_style=" + *style + " is neither true nor false"};
    }
    location.path_style = *style == "true";
  }
  return location;
}

S3Client::S3Client(S3Location location, Env& env)
    : location_(std::move(location)),
      place_("s3://" + location_.bucket + "/" + location_.prefix),
      env_(env),
      credentials_(env) {
  const std::string region = RegionOf(location_);
  const std::string endpoint =
      location_.endpoint.empty() ? "https://s3." + region + ".amazonaws.com" : location_.endpoint;
  if (location_.path_style) {
    base_url_ = endpoint + "/" + EncodePath(location_.bucket) + "/";
  } else {
    const size_t host = endpoint.find("://") + 3;
    base_url_ = endpoint.substr(0, host) + location_.bucket + "." + endpoint.substr(host) + "/";
  }
}

Error S3Client::ErrorOf(const std::string& what, const HttpResponse& response) const {
  const std::string reason(Element(response.body, "Message").value_or(""));
  const std::string code(Element(response.body, "Code").value_or(""));
  Error error{
      .code = Code::kInvalid,
      .message = Redact(what + ": status " + std::to_string(response.status) +
                        (code.empty() ? "" : ", " + code) + (reason.empty() ? "" : ": " + reason))};
  if (HasExpired(code)) {
    error.code = Code::kPermission;
    error.hint = "renew the credentials: those found have expired";
    return error;
  }
  // A body that arrived too slowly, also with status 400.
  if (code == "RequestTimeout") {
    error.code = Code::kUnavailable;
    return error;
  }
  switch (response.status) {
    case 404:
      error.code = Code::kNotFound;
      break;
    case 401:
    case 403:
      error.code = Code::kPermission;
      error.hint =
          "grant the credentials s3:GetObject and s3:ListBucket there; for writing also "
          "s3:PutObject and s3:DeleteObject";
      break;
    case 301:
    case 307:
    case 400:
      error.hint = "check the region of the bucket, and give it with region=NAME";
      break;
    default:
      if (IsTransient(response)) error.code = Code::kUnavailable;
  }
  return error;
}

Result<HttpResponse> S3Client::Send(const std::string& method, const std::string& key,
                                    const std::string& query, const HttpHeaders& headers,
                                    size_t max_bytes, const std::string& body) {
  const std::string what = "s3://" + location_.bucket + "/" + key;
  Backoff backoff(env_, {}, {.first = kFirstPause});
  bool renewed = false;
  for (int attempt = 1;; ++attempt) {
    HttpRequest request{.method = method,
                        .url = base_url_ + EncodePath(key) + (query.empty() ? "" : "?" + query),
                        .headers = headers,
                        .body = body,
                        .max_response_bytes = max_bytes + 64 * 1024,
                        .writes = false};
    MUSTER_ASSIGN(const AwsCredentials credentials, credentials_.Get());
    MUSTER_TRY(SignRequest(request, credentials, {.region = RegionOf(location_), .service = "s3"},
                           env_.WallNow()));
    auto response = http_.Send(request);
    if (response && response->status < 300) return std::move(*response);
    const Error error = response ? ErrorOf(what, *response) : response.error().Within(what);
    // Expired credentials may have been renewed.
    if (error.code == Code::kPermission) credentials_.Forget();
    const bool expired =
        response && HasExpired(Element(response->body, "Code").value_or(std::string_view()));
    if (expired && !std::exchange(renewed, true)) continue;
    if (error.code != Code::kUnavailable || attempt == kTries) return error;
    backoff.Pause();
  }
}

Result<uint64_t> S3Client::Size(const std::string& key) {
  MUSTER_ASSIGN(const HttpResponse response, Send("HEAD", location_.prefix + key, "", {}, 0));
  const std::string_view text = response.Header("Content-Length").value_or("");
  uint64_t size = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (problem != std::errc() || end != text.data() + text.size()) {
    return Error{Code::kInvalid, place_ + key + ": the server does not report its size"};
  }
  return size;
}

Result<std::string> S3Client::Read(const std::string& key, uint64_t offset, uint64_t length) {
  if (length == 0) return std::string();
  const std::string range =
      "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + length - 1);
  auto response = Send("GET", location_.prefix + key, "", {{"Range", range}}, length);
  const Error short_object{Code::kCorrupt,
                           place_ + key + ": ends before the " + std::to_string(length) +
                               " bytes that should be at " + std::to_string(offset)};
  if (!response) {
    // 416: the range starts past the end.
    if (response.error().message.find("status 416") != std::string::npos) return short_object;
    return response.error();
  }
  // A server without range support sends the whole object.
  if (response->status == 200 && offset == 0 && response->body.size() >= length) {
    response->body.resize(length);
  } else if (response->status != 206) {
    return Error{Code::kIncompatible, place_ + key + ": the server does not serve ranges"};
  }
  if (response->body.size() != length) return short_object;
  return std::move(response->body);
}

Status S3Client::Write(const std::string& key, const std::string& bytes) {
  MUSTER_TRY(Send("PUT", location_.prefix + key, "", {}, 0, bytes));
  return {};
}

Status S3Client::WriteFile(const std::string& key, const std::string& path) {
  std::error_code failed;
  const size_t size = std::filesystem::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) return Error{Code::kUnavailable, path + " cannot be read"};
  if (size <= kPartBytes) {
    std::string bytes(size, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (!file) return Error{Code::kUnavailable, path + " cannot be read"};
    return Write(key, bytes);
  }
  const std::string whole = location_.prefix + key;
  MUSTER_ASSIGN(const HttpResponse begun, Send("POST", whole, "uploads=", {}, 0));
  const std::string id(Element(begun.body, "UploadId").value_or(""));
  if (id.empty())
    return Error{Code::kIncompatible,
                 place_ + key + ": the server did not start a multipart upload"};
  const std::string upload = "uploadId=" + PercentEncode(id);
  Status written = WriteParts(whole, file, std::max(kPartBytes, size / kMaxParts + 1), upload);
  // Incomplete uploads cost money.
  if (!written) static_cast<void>(Send("DELETE", whole, upload, {}, 0));
  return written;
}

Status S3Client::WriteParts(const std::string& key, std::istream& file, size_t part_bytes,
                            const std::string& upload) {
  const std::string what = "s3://" + location_.bucket + "/" + key;
  std::string parts;
  for (int number = 1; file.peek() != std::istream::traits_type::eof(); ++number) {
    std::string bytes(part_bytes, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(part_bytes));
    bytes.resize(static_cast<size_t>(file.gcount()));
    const std::string part = std::to_string(number);
    MUSTER_ASSIGN(const HttpResponse answer,
                  Send("PUT", key, "partNumber=" + part + "&" + upload, {}, 0, bytes));
    parts += "<Part><PartNumber>" + part + "</PartNumber><ETag>" +
             std::string(answer.Header("ETag").value_or("")) + "</ETag></Part>";
  }
  if (file.bad()) return Error{Code::kUnavailable, what + ": its file cannot be read"};
  MUSTER_ASSIGN(const HttpResponse whole,
                Send("POST", key, upload, {}, 0,
                     "<CompleteMultipartUpload>" + parts + "</CompleteMultipartUpload>"));
  // It may respond with 200 and then report a failure.
  if (whole.body.find("<CompleteMultipartUploadResult") == std::string::npos)
    return Error{Code::kUnavailable,
                 what + ": " + std::string(Element(whole.body, "Message").value_or(""))};
  return {};
}

Status S3Client::Remove(const std::string& key) {
  const auto removed = Send("DELETE", location_.prefix + key, "", {}, 0);
  if (!removed && removed.error().code != Code::kNotFound) return removed.error();
  return {};
}

Result<std::vector<std::string>> S3Client::List() {
  std::vector<std::string> names;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    std::string query =
        "delimiter=%2F&encoding-type=url&list-type=2&prefix=" + PercentEncode(location_.prefix);
    if (!token.empty()) query = "continuation-token=" + PercentEncode(token) + "&" + query;
    MUSTER_ASSIGN(const HttpResponse response, Send("GET", "", query, {}, kMaxListBytes));
    const std::string_view xml = response.body;
    for (const auto& [outer, inner] :
         {std::pair{"Contents", "Key"}, std::pair{"CommonPrefixes", "Prefix"}}) {
      for (size_t at = 0;;) {
        const auto entry = Element(xml, outer, at);
        if (!entry) break;
        MUSTER_ASSIGN(std::string key, DecodeKey(Element(*entry, inner).value_or("")));
        if (!key.starts_with(location_.prefix)) continue;
        key.erase(0, location_.prefix.size());
        while (key.ends_with('/')) key.pop_back();
        if (!key.empty()) names.push_back(std::move(key));
      }
    }
    const auto next = Element(xml, "NextContinuationToken");
    if (Element(xml, "IsTruncated").value_or("false") != "true" || !next) {
      std::sort(names.begin(), names.end());
      return names;
    }
    token = *next;
  }
  return Error{Code::kInvalid, place_ + ": too many names to list"};
}

}  // namespace muster::net
