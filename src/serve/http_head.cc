#include "serve/http_head.h"

#include <http_parser.h>

#include "serve/route.h"

namespace muster::serve {
namespace {

// "a=1&b=2", decoded. A bad escape stays as it is.
std::vector<std::pair<std::string, std::string>> ParseQuery(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    query.emplace_back(DecodeQueryText(pair.substr(0, equals)),
                       DecodeQueryText(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return query;
}

WebResponse RefusalFor(http_errno error) {
  if (error == HPE_UNEXPECTED_CONTENT_LENGTH) {
    return WebResponse::OfProblem(411, "length_required",
                                  "a body needs exactly one Content-Length and no encoding");
  }
  if (error == HPE_HEADER_OVERFLOW) {
    return WebResponse::OfProblem(431, "too_large", "the request's headers are too large");
  }
  return WebResponse::OfProblem(400, "invalid",
                                std::string("malformed request: ") + http_errno_description(error));
}

}  // namespace

struct HeadParser::State {
  http_parser parser{};
  WebRequest request{};
  std::string target;
  bool in_value = false;
  bool done = false;
  bool keep_alive = false;
  bool chunks = false;
  std::optional<WebResponse> refusal;

  static State& Of(http_parser* parser) { return *static_cast<State*>(parser->data); }

  // Names and values may arrive in pieces.
  static int OnTarget(http_parser* parser, const char* at, size_t size) {
    Of(parser).target.append(at, size);
    return 0;
  }
  static int OnName(http_parser* parser, const char* at, size_t size) {
    State& state = Of(parser);
    if (state.in_value || state.request.headers.empty()) state.request.headers.emplace_back();
    state.in_value = false;
    state.request.headers.back().first.append(at, size);
    return 0;
  }
  static int OnValue(http_parser* parser, const char* at, size_t size) {
    State& state = Of(parser);
    state.in_value = true;
    state.request.headers.back().second.append(at, size);
    return 0;
  }
  static int OnHead(http_parser* parser) {
    constexpr int kNoBody = 2;  // the parser stops here: bodies are read elsewhere
    Of(parser).Finish();
    return kNoBody;
  }

  void Finish() {
    done = true;
    keep_alive = http_should_keep_alive(&parser) != 0;
    chunks = parser.http_major > 1 || (parser.http_major == 1 && parser.http_minor >= 1);
    request.method = http_method_str(static_cast<http_method>(parser.method));
    const size_t question = std::min(target.find('?'), target.size());
    request.path = target.substr(0, question);
    request.query =
        ParseQuery(std::string_view(target).substr(std::min(question + 1, target.size())));
    for (auto& [name, value] : request.headers) {
      value.erase(value.find_last_not_of(" \t") + 1);
      // The parser accepts it, but a proxy may treat "Content-Length :" as a different header.
      if (name.find(' ') == name.npos) continue;
      refusal = WebResponse::OfProblem(400, "invalid", "malformed request: a space in a header");
    }
  }
};

HeadParser::HeadParser() : state_(std::make_unique<State>()) {
  http_parser_init(&state_->parser, HTTP_REQUEST);
  state_->parser.data = state_.get();
}

HeadParser::~HeadParser() = default;

size_t HeadParser::Feed(std::string_view bytes) {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_url = State::OnTarget;
  settings.on_header_field = State::OnName;
  settings.on_header_value = State::OnValue;
  settings.on_headers_complete = State::OnHead;
  const size_t taken = http_parser_execute(&state_->parser, &settings, bytes.data(), bytes.size());
  const http_errno error = HTTP_PARSER_ERRNO(&state_->parser);
  if (error != HPE_OK) state_->refusal = RefusalFor(error);
  return taken;
}

bool HeadParser::done() const { return state_->done; }
const std::optional<WebResponse>& HeadParser::refusal() const { return state_->refusal; }
WebRequest& HeadParser::request() { return state_->request; }
bool HeadParser::keep_alive() const { return state_->keep_alive; }
bool HeadParser::chunks() const { return state_->chunks; }

}  // namespace muster::serve
