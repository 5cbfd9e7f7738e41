#include "serve/http_writer.h"

#include <http_parser.h>

#include <charconv>

namespace muster::serve {
namespace {

class SocketStream final : public WebStream {
 public:
  SocketStream(ClientSocket& client, bool chunks, std::stop_token stop)
      : client_(client), chunks_(chunks), stop_(std::move(stop)) {}

  bool Write(std::string_view bytes) override {
    if (stop_.stop_requested()) return false;
    if (bytes.empty()) return true;  // an empty chunk would be the last
    return Send(chunks_ ? Chunk(bytes) : std::string(bytes));
  }
  std::stop_token stop() const override { return stop_; }

  void End() {
    if (chunks_) Send("0\r\n\r\n");
  }

 private:
  static std::string Chunk(std::string_view bytes) {
    char size[16];
    char* end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
    std::string chunk(size, end);
    return chunk.append("\r\n").append(bytes).append("\r\n");
  }
  bool Send(const std::string& bytes) { return client_.Write(bytes.data(), bytes.size()); }

  ClientSocket& client_;
  const bool chunks_;
  const std::stop_token stop_;
};

std::string HeadOf(const WebResponse& response, const AnswerForm& form) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     http_status_str(static_cast<http_status>(response.status)) + "\r\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  for (const auto& [name, value] : form.headers) add(name, value);
  for (const auto& [name, value] : response.headers) add(name, value);
  if (!form.keep) add("Connection", "close");
  if (response.stream || !response.body.empty()) add("Content-Type", response.content_type);
  if (!response.stream) {
    constexpr int kNoContent = 204;
    if (response.status != kNoContent) add("Content-Length", std::to_string(response.body.size()));
  } else if (form.chunks) {
    add("Transfer-Encoding", "chunked");
  }
  return head + "\r\n";
}

}  // namespace

bool WriteResponse(const WebResponse& response, const AnswerForm& form, const std::stop_token& stop,
                   ClientSocket& client) {
  std::string text = HeadOf(response, form);
  if (!form.head_only && !response.stream) text += response.body;
  if (!client.Write(text.data(), text.size())) return false;
  if (form.head_only || !response.stream) return form.keep;
  SocketStream stream(client, form.chunks, stop);
  response.stream(stream);
  stream.End();
  return false;
}

}  // namespace muster::serve
