#include "net/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cassert>

#include "core/base64.h"
#include "core/descriptor.h"
#include "core/gzip.h"
#include "core/interrupt.h"
#include "core/mutex.h"
#include "core/secrets.h"

namespace muster::net {
namespace {

using std::chrono::milliseconds;

constexpr const char* kInDoubt = "the change may have been applied: read again, then decide";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view Trim(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool Writes(const HttpRequest& request) {
  return request.writes.value_or(request.method != "GET" && request.method != "HEAD");
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

constexpr std::string_view kRequestLess = "request less data at a time";

// Otherwise a value could inject headers, or a URL another request.
Status CheckRequest(const HttpRequest& request) {
  if (!IsToken(request.method)) return Error{Code::kInvalid, "invalid HTTP method"};
  for (const char c : request.url) {
    if (c <= ' ' || c >= '\x7f') {
      return Error{Code::kInvalid,
                   "the URL contains a space, a control character or non-ASCII text",
                   "write such characters as %XX"};
    }
  }
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name)) return Error{Code::kInvalid, "invalid HTTP header name"};
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != value.npos) {
      return Error{Code::kInvalid, "the HTTP header " + name + " contains a line break or NUL"};
    }
  }
  return {};
}

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

List ListOf(const HttpHeaders& headers) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  bool has_type = false;
  bool has_encoding = false;
  for (const auto& [name, value] : headers) {
    // libcurl's syntax for an empty header.
    add(value.empty() ? name + ";" : name + ": " + value);
    has_type = has_type || SameHeaderName(name, "Content-Type");
    has_encoding = has_encoding || SameHeaderName(name, "Accept-Encoding");
  }
  add("Expect:");  // no round trip for 100-continue
  if (!has_type) add("Content-Type:");
  // Decoded here: libcurl accepts a truncated gzip stream.
  if (!has_encoding) add("Accept-Encoding: gzip");
  return List(list);
}

// One request in flight. libcurl calls back into it, only on Send's thread.
struct Exchange {
  const HttpRequest& request;
  std::stop_token stop;
  HttpResponse response = {};
  size_t received_bytes = 0;
  bool sent = false;
  bool too_large = false;
  bool has_headers = false;  // all of them
  std::string fault = {};    // why there is no response, if libcurl does not know

  bool Stopped() const { return stop.stop_requested() || Interrupted(); }

  bool Count(size_t bytes) {
    received_bytes += bytes;
    too_large = received_bytes > request.max_response_bytes;
    return !too_large;
  }

  static int BeforeSending(void* self, char*, char*, int, int) {
    auto& exchange = *static_cast<Exchange*>(self);
    // When a reused connection closes without a response, libcurl resends on a new one. A server
    // that acted and then died would act twice.
    if (exchange.sent && Writes(exchange.request)) {
      exchange.fault = "the connection ended without an answer";
      return CURL_PREREQFUNC_ABORT;
    }
    if (exchange.Stopped()) return CURL_PREREQFUNC_ABORT;
    exchange.sent = true;
    return CURL_PREREQFUNC_OK;
  }

  static size_t OnHeader(char* bytes, size_t, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (!exchange.Count(count)) return 0;
    const std::string_view line(bytes, count);
    // An interim response, such as 100 Continue, precedes the final one.
    if (line.starts_with("HTTP/")) {
      exchange.response.headers.clear();
      exchange.has_headers = false;
    } else if (const size_t colon = line.find(':'); colon != line.npos) {
      exchange.response.headers.emplace_back(Trim(line.substr(0, colon)),
                                             Trim(line.substr(colon + 1)));
    } else if (Trim(line).empty()) {
      exchange.has_headers = true;
    }
    return count;
  }

  static size_t OnBody(char* bytes, size_t, size_t count, void* self) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (!exchange.Count(count)) return 0;
    exchange.response.body.append(bytes, count);
    return count;
  }

  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Exchange*>(self)->Stopped() ? 1 : 0;
  }

  // Whether the response libcurl accepted is complete.
  bool Finish() {
    // libcurl accepts a connection that closes anywhere after the status line.
    if (!has_headers) {
      fault = "the connection ended in the middle of the headers";
      return false;
    }
    const auto encoding = response.Header("Content-Encoding");
    if (!response.body.empty() && encoding && SameHeaderName(*encoding, "gzip")) {
      auto unpacked = Gunzip(response.body, request.max_response_bytes);
      too_large = !unpacked && unpacked.error().code == Code::kInvalid;
      if (!unpacked) fault = unpacked.error().message;
      if (unpacked) response.body = *std::move(unpacked);
    }
    return fault.empty();
  }
};

template <class T>
void Set(CURL* handle, CURLoption option, T value) {
  // Fails only for options this libcurl lacks, or out of memory.
  const CURLcode code = curl_easy_setopt(handle, option, value);
  assert(code == CURLE_OK);
}

// To libcurl 0 means no timeout, while here it means no time left.
long Patience(milliseconds timeout) {
  return static_cast<long>(std::max<int64_t>(timeout.count(), 1));
}

void Prepare(CURL* handle, const HttpOptions& options, Exchange& exchange,
             const curl_slist* headers, char* reason) {
  const HttpRequest& request = exchange.request;
  Set(handle, CURLOPT_ERRORBUFFER, reason);
  Set(handle, CURLOPT_NOSIGNAL, 1L);
  Set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(handle, CURLOPT_MAXCONNECTS, 4L);
  Set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(handle, CURLOPT_URL, request.url.c_str());
  Set(handle, CURLOPT_PATH_AS_IS, 1L);
  Set(handle, CURLOPT_USERAGENT, "muster");
  Set(handle, CURLOPT_HTTPHEADER, headers);
  Set(handle, CURLOPT_CONNECTTIMEOUT_MS, Patience(request.connect_timeout));
  Set(handle, CURLOPT_TIMEOUT_MS, Patience(request.timeout));

  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (request.method == "HEAD") {
    Set(handle, CURLOPT_NOBODY, 1L);
  } else if (has_body) {
    Set(handle, CURLOPT_POST, 1L);
    Set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    Set(handle, CURLOPT_POSTFIELDS, request.body.data());
  }
  Set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());

  Set(handle, CURLOPT_SSL_VERIFYPEER, options.verify_tls ? 1L : 0L);
  Set(handle, CURLOPT_SSL_VERIFYHOST, options.verify_tls ? 2L : 0L);
  if (!options.ca_file.empty()) Set(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.cert_file.empty()) Set(handle, CURLOPT_SSLCERT, options.cert_file.c_str());
  if (!options.key_file.empty()) Set(handle, CURLOPT_SSLKEY, options.key_file.c_str());
  if (!options.use_proxy) Set(handle, CURLOPT_NOPROXY, "*");

  Set(handle, CURLOPT_PREREQFUNCTION, &Exchange::BeforeSending);
  Set(handle, CURLOPT_PREREQDATA, &exchange);
  Set(handle, CURLOPT_HEADERFUNCTION, &Exchange::OnHeader);
  Set(handle, CURLOPT_HEADERDATA, &exchange);
  Set(handle, CURLOPT_WRITEFUNCTION, &Exchange::OnBody);
  Set(handle, CURLOPT_WRITEDATA, &exchange);
  Set(handle, CURLOPT_NOPROGRESS, 0L);
  Set(handle, CURLOPT_XFERINFOFUNCTION, &Exchange::OnProgress);
  Set(handle, CURLOPT_XFERINFODATA, &exchange);
}

Error NotSent(CURLcode code, const std::string& what, const HttpOptions& options) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return Error{Code::kPermission, what,
                   options.ca_file.empty()
                       ? "if the server's certificate is signed by your own CA, set ca_file to "
                         "the CA's PEM file"
                       : "check that ca_file contains the CA that signed the server's "
                         "certificate, and that the certificate is for this host"};
    case CURLE_SSL_CACERT_BADFILE:
      return Error{Code::kInvalid, what, "check that ca_file names a readable PEM file"};
    case CURLE_SSL_CERTPROBLEM:
      return Error{
          Code::kInvalid, what,
          "check that cert_file and key_file name readable PEM files that belong together, "
          "the key without a passphrase"};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Error{Code::kInvalid, what, "write the URL as https://HOST:PORT/PATH"};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      if (HasNoDescriptors()) return OutOfDescriptors(what);
      return Error{Code::kUnavailable, what, "check the host's name, and DNS on this machine"};
    default:
      if (HasNoDescriptors()) return OutOfDescriptors(what);
      return Error{Code::kUnavailable, what,
                   "check that the server is running, and the host, port and scheme in the URL"};
  }
}

Error Failure(const Exchange& exchange, CURLcode code, std::string_view reason,
              const HttpTarget& target, const HttpOptions& options) {
  const HttpRequest& request = exchange.request;
  const bool in_doubt = exchange.sent && Writes(request);
  std::string what = request.method + " ";
  what.append(target.scheme).append("://").append(target.authority).append(target.path);
  what += ": ";
  if (exchange.too_large) {
    return Error{
        Code::kInvalid,
        Redact(what + "the answer, of status " + std::to_string(exchange.response.status) +
               ", is larger than " + std::to_string(request.max_response_bytes) + " bytes"),
        std::string(kRequestLess)};
  }
  if (code == CURLE_ABORTED_BY_CALLBACK && exchange.fault.empty()) {
    return Error{Code::kCancelled, Redact(what + "stopped on request"), in_doubt ? kInDoubt : ""};
  }
  if (!exchange.fault.empty()) reason = exchange.fault;
  what += reason.empty() ? curl_easy_strerror(code) : reason;
  what = Redact(what);
  if (!exchange.sent) return NotSent(code, what, options);
  if (in_doubt) return Error{Code::kUnknownOutcome, what, kInDoubt};
  return Error{Code::kUnavailable, what, "try again; if it fails again, check the server's log"};
}

}  // namespace

// Idle handles with their open connections.
class HttpClient::Pool {
 public:
  Handle Take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        Handle handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    return Handle(curl_easy_init());
  }

  void Return(Handle handle) {
    curl_easy_reset(handle.get());  // resets all options but keeps connections
    const MutexLock lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
  }

 private:
  static constexpr size_t kMaxIdle = 64;
  Mutex mutex_;
  std::vector<Handle> idle_ GUARDED_BY(mutex_);
};

HttpClient::HttpClient(HttpOptions options)
    : options_(std::move(options)), pool_(std::make_unique<Pool>()) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  assert(kReady == CURLE_OK);
}

HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::Send(const HttpRequest& request, std::stop_token stop) {
  MUSTER_ASSIGN(const HttpTarget target, SplitHttpUrl(request.url));
  MUSTER_TRY(CheckRequest(request));
  Handle handle = pool_->Take();
  const List headers = ListOf(request.headers);
  if (!handle || !headers) return Error{Code::kUnavailable, "out of memory for an HTTP request"};
  Exchange exchange{request, std::move(stop)};
  char reason[CURL_ERROR_SIZE] = "";
  Prepare(handle.get(), options_, exchange, headers.get(), reason);
  const CURLcode code = curl_easy_perform(handle.get());
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  pool_->Return(std::move(handle));
  exchange.response.status = static_cast<int>(status);
  if (code != CURLE_OK || !exchange.Finish()) {
    return Failure(exchange, code, reason, target, options_);
  }
  return std::move(exchange.response);
}

std::optional<std::string_view> HttpResponse::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (SameHeaderName(key, name)) return value;
  }
  return std::nullopt;
}

bool SameHeaderName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

bool IsAnswerTooLarge(const Error& error) {
  return error.code == Code::kInvalid && error.hint == kRequestLess;
}

Result<HttpTarget> SplitHttpUrl(std::string_view url) {
  const size_t colon = url.find("://");
  HttpTarget target{.scheme = url.substr(0, colon), .authority = {}, .path = {}, .query = {}};
  if (colon == url.npos || (target.scheme != "http" && target.scheme != "https")) {
    return Error{Code::kInvalid, "the URL does not begin with https:// or http://"};
  }
  url = url.substr(colon + 3, url.find('#') - colon - 3);
  if (const size_t mark = url.find('?'); mark != url.npos) {
    target.query = url.substr(mark + 1);
    url = url.substr(0, mark);
  }
  target.authority = url.substr(0, url.find('/'));
  target.path = url.substr(target.authority.size());
  if (target.authority.empty()) return Error{Code::kInvalid, "the URL names no host"};
  if (target.authority.find('@') != target.authority.npos) {
    return Error{Code::kInvalid, "the URL of an HTTP request contains a user name",
                 "give credentials separately"};
  }
  return target;
}

std::string BasicAuthorization(std::string_view user, std::string_view password) {
  const std::string plain = std::string(user) + ":" + std::string(password);
  const std::string encoded = EncodeBase64(plain);
  RememberSecret(password);
  RememberSecret(encoded);
  return "Basic " + encoded;
}

std::optional<WallTime> ParseHttpDate(std::string_view text) {
  const time_t seconds = curl_getdate(std::string(text).c_str(), nullptr);
  if (seconds < 0) return std::nullopt;
  return WallTime(std::chrono::seconds(seconds));
}

}  // namespace muster::net
