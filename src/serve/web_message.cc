#include "serve/web_message.h"

#include <algorithm>

#include "core/secrets.h"

namespace muster::serve {
namespace {

int StatusFor(Code code) {
  switch (code) {
    case Code::kInvalid:
      return 400;
    case Code::kPermission:
    case Code::kReadOnly:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kConflict:
    case Code::kLeaseLost:
      return 409;
    case Code::kUnavailable:
    case Code::kUnknownOutcome:
    case Code::kFull:
    case Code::kCancelled:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

std::optional<std::string_view> WebRequest::Header(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : headers) {
    if (!net::SameHeaderName(key, name)) continue;
    // Ambiguous: a proxy may have used the other one.
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

bool WebRequest::HasHeader(std::string_view name) const {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& header) { return net::SameHeaderName(header.first, name); });
}

std::optional<std::string> WebRequest::Param(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Json ProblemOf(const Error& error) {
  Json problem{{"code", CodeName(error.code)}, {"message", Redact(error.message)}};
  if (!error.hint.empty()) problem["hint"] = Redact(error.hint);
  return problem;
}

WebResponse WebResponse::OfJson(const Json& json) { return {.body = Redact(ToJsonText(json))}; }

WebResponse WebResponse::OfText(int status, std::string text) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(text)};
}

WebResponse WebResponse::OfError(const Error& error) {
  return {.status = StatusFor(error.code), .body = ToJsonText({{"error", ProblemOf(error)}})};
}

WebResponse WebResponse::OfProblem(int status, std::string_view code, std::string_view message,
                                   std::string_view hint) {
  Json problem{{"code", code}, {"message", message}};
  if (!hint.empty()) problem["hint"] = hint;
  return {.status = status, .body = ToJsonText({{"error", std::move(problem)}})};
}

}  // namespace muster::serve
