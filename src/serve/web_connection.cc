#include "serve/web_connection.h"

#include <pthread.h>

#include <charconv>
#include <csignal>

#include "core/guard.h"
#include "serve/http_writer.h"

namespace muster::serve {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// TLS writes without MSG_NOSIGNAL.
void BlockSigpipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

struct BodyLength {
  size_t bytes = 0;
  std::optional<WebResponse> refusal = {};
};

BodyLength LengthOf(const WebRequest& request, size_t most) {
  const auto given = request.Header("Content-Length");
  if (!given) {
    return {.refusal = WebResponse::OfProblem(
                411, "length_required", "a body needs exactly one Content-Length and no encoding")};
  }
  size_t length = 0;
  const char* end = given->data() + given->size();
  const auto parsed = std::from_chars(given->data(), end, length);
  if (parsed.ec == std::errc::result_out_of_range || length > most) {
    return {.refusal = WebResponse::OfProblem(
                413, "too_large", "the body limit is " + std::to_string(most) + " bytes")};
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return {.refusal = WebResponse::OfProblem(400, "invalid", "Content-Length is not a number")};
  }
  return {.bytes = length};
}

}  // namespace

void WebConnection::Start(const TlsContext& tls, const std::stop_token& stop) {
  thread_ = std::jthread([this, &tls, stop] { Run(tls, stop); });
}

void WebConnection::Run(const TlsContext& tls, const std::stop_token& stop) {
  BlockSigpipe();
  LogThrown("a connection", [&] { Serve(tls, stop); });
  client_.Finish();
  ended_ = true;
}

void WebConnection::Serve(const TlsContext& tls, const std::stop_token& stop) {
  if (tls != nullptr && !client_.StartTls(tls.get(), Clock::now() + options_.request_timeout)) {
    return;
  }
  while (!stop.stop_requested() && client_.AwaitRequest(Clock::now() + options_.idle_timeout)) {
    if (!ServeOne(stop)) return;
  }
}

bool WebConnection::ServeOne(const std::stop_token& stop) {
  client_.Limit(options_.max_head_bytes, Clock::now() + options_.request_timeout);
  HeadParser head;
  if (!ReadHead(head)) return false;
  WebRequest& request = head.request();
  request.peer = peer_;
  bool keep = head.keep_alive();
  const WebResponse response = head.refusal() ? *head.refusal() : Answer(request, keep);
  keep = keep && !head.refusal() && !response.stream;
  return WriteResponse(response,
                       {.headers = options_.headers,
                        .head_only = request.method == "HEAD",
                        .keep = keep,
                        .chunks = head.chunks()},
                       stop, client_);
}

bool WebConnection::ReadHead(HeadParser& head) {
  while (!head.done() && !head.refusal()) {
    const std::string_view bytes = client_.Peek();
    if (bytes.empty()) return false;
    client_.Skip(head.Feed(bytes));
  }
  return true;
}

WebResponse WebConnection::Answer(WebRequest& request, bool& keep) {
  if (!request.HasHeader("Content-Length") && !request.HasHeader("Transfer-Encoding")) {
    if (auto refusal = handler_.Refuse(request)) return *std::move(refusal);
    return handler_.Handle(request);
  }
  // A body that is not read would be taken for the next request.
  const bool kept = std::exchange(keep, false);
  const BodyLength length = LengthOf(request, options_.max_body_bytes);
  if (length.refusal) return *length.refusal;
  if (auto refusal = handler_.Refuse(request)) return *std::move(refusal);
  if (request.Header("Expect") == "100-continue") {
    client_.Write(kContinue.data(), kContinue.size());
  }
  client_.Allow(length.bytes);
  if (!client_.ReadAll(request.body, length.bytes)) {
    return WebResponse::OfProblem(408, "timeout", "the body did not arrive in time");
  }
  keep = kept;
  return handler_.Handle(request);
}

}  // namespace muster::serve
