#include "task/aws/aws_protocol.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "core/url.h"
#include "task/aws/aws_xml.h"

namespace muster::task {
namespace {

using Protocol = AwsService::Protocol;

constexpr int kMaxDepth = 50;

// Objects whose keys are the user's, not the service's.
bool IsMap(std::string_view name) {
  constexpr std::array kMaps = {"Tags",       "Environment", "Variables", "Parameters",
                                "Attributes", "Labels",      "Options",   "Context",
                                "Metadata",   "Headers",     "Arguments", "DefaultArguments"};
  return std::any_of(kMaps.begin(), kMaps.end(),
                     [&](std::string_view map) { return PascalCase(name) == map; });
}

Json Renamed(const Json& value, std::string (*rename)(std::string_view)) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& element : value) list.push_back(Renamed(element, rename));
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [name, member] : value.items()) {
    object[rename(name)] = IsMap(name) && member.is_object() ? member : Renamed(member, rename);
  }
  return object;
}

// JSON has no type for seconds since 1970: they are recognised by the member's name, and by lying
// between 1973 and 5138.
bool IsTime(std::string_view name, const Json& value) {
  if (!value.is_number()) return false;
  const double seconds = value.get<double>();
  if (seconds < 1e8 || seconds >= 1e11) return false;
  return name.ends_with("Date") || name.ends_with("Time") || name.ends_with("At") ||
         name.ends_with("On") || name.ends_with("Timestamp") || name.ends_with("DateTime");
}

Json ShownTime(double seconds, AwsTimes times) {
  const auto since_epoch_ms = static_cast<int64_t>(std::llround(seconds * 1000));
  if (times == AwsTimes::kMilliseconds) return since_epoch_ms;
  const std::time_t whole = since_epoch_ms / 1000;
  std::tm utc{};
  gmtime_r(&whole, &utc);
  std::array<char, 40> text;
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const int64_t fraction = since_epoch_ms % 1000;
  std::string shown(text.data(), length);
  if (fraction != 0) {
    std::snprintf(text.data(), text.size(), ".%03d", static_cast<int>(fraction));
    shown += text.data();
  }
  return shown + "Z";
}

void ShowTimes(Json& value, AwsTimes times) {
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end(); ++member) {
    if (value.is_object() && IsTime(member.key(), *member)) {
      *member = ShownTime(member->get<double>(), times);
    } else {
      ShowTimes(*member, times);
    }
  }
}

std::string ScalarText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : ToJsonText(value);
}

// Name.member.1=…, Name.Inner=…, and for maps Name.entry.1.key=…&Name.entry.1.value=….
Status AppendForm(std::string& form, const std::string& name, const Json& value, int depth) {
  if (depth > kMaxDepth) return Error{Code::kInvalid, name + ": nested too deep"};
  if (value.is_null()) return {};
  if (value.is_array()) {
    // SNS and the like write an empty list as an empty value.
    if (value.empty()) form += "&" + PercentEncode(name) + "=";
    for (size_t i = 0; i < value.size(); ++i) {
      MUSTER_TRY(AppendForm(form, name + ".member." + std::to_string(i + 1), value[i], depth + 1));
    }
    return {};
  }
  if (!value.is_object()) {
    form += "&" + PercentEncode(name) + "=" + PercentEncode(ScalarText(value));
    return {};
  }
  const bool named = name == "MessageAttributes";
  const bool map = named || IsMap(name);
  int index = 0;
  for (const auto& [key, member] : value.items()) {
    if (!map) {
      MUSTER_TRY(AppendForm(form, name + "." + key, member, depth + 1));
      continue;
    }
    const std::string entry = name + ".entry." + std::to_string(++index);
    MUSTER_TRY(AppendForm(form, entry + (named ? ".Name" : ".key"), key, depth + 1));
    MUSTER_TRY(AppendForm(form, entry + (named ? ".Value" : ".value"), member, depth + 1));
  }
  return {};
}

std::string ShortCode(std::string_view code) {
  // "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "NotFound:http://…"
  if (const size_t hash = code.rfind('#'); hash != std::string_view::npos) {
    code.remove_prefix(hash + 1);
  }
  return std::string(code.substr(0, code.find(':')));
}

std::string TextMember(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (object.is_object() && object.contains(name) && object[name].is_string()) {
      return object[name].get<std::string>();
    }
  }
  return {};
}

}  // namespace

std::string PascalCase(std::string_view name) {
  std::string text(name);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string CamelCase(std::string_view name) {
  std::string text(name);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string KebabCase(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !text.empty()) text += '-';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

Result<net::HttpRequest> EncodeAwsCall(const AwsService& service, std::string_view action,
                                       const Json& parameters) {
  if (!parameters.is_object() && !parameters.is_null()) {
    return Error{Code::kInvalid, "the parameters of " + std::string(service.name) + ":" +
                                     std::string(action) + " must be an object"};
  }
  net::HttpRequest request{.method = "POST", .url = "/"};
  if (service.protocol == Protocol::kQuery) {
    request.headers.emplace_back("Content-Type",
                                 "application/x-www-form-urlencoded; charset=utf-8");
    request.body = "Action=" + std::string(action) + "&Version=" + std::string(service.version);
    for (const auto& [name, value] : parameters.items()) {
      MUSTER_TRY(AppendForm(request.body, name, value, 0));
    }
    return request;
  }
  const Json body = parameters.is_null() ? Json::object() : parameters;
  request.body = ToJsonText(service.camel_case ? Renamed(body, CamelCase) : body);
  if (service.protocol == Protocol::kRestByName) {
    request.url = "/" + KebabCase(action);
    request.headers.emplace_back("Content-Type", "application/json");
    return request;
  }
  request.headers.emplace_back("Content-Type", service.protocol == Protocol::kJson10
                                                   ? "application/x-amz-json-1.0"
                                                   : "application/x-amz-json-1.1");
  request.headers.emplace_back("X-Amz-Target",
                               std::string(service.version) + "." + std::string(action));
  return request;
}

Result<Json> DecodeAwsAnswer(const AwsService& service, std::string_view action,
                             const net::HttpResponse& response, AwsTimes times) {
  if (service.protocol == Protocol::kQuery) {
    MUSTER_ASSIGN(Json answer, ParseAwsXml(response.body));
    const std::string result = std::string(action) + "Result";
    if (answer.is_object() && answer.contains(result) && answer[result].is_object()) {
      return std::move(answer[result]);
    }
    return Json::object();
  }
  if (response.body.empty()) return Json::object();
  MUSTER_ASSIGN(Json answer, ParseJson(response.body, "the answer"));
  if (service.camel_case) answer = Renamed(answer, PascalCase);
  // DynamoDB's numbers are strings, and its items are the user's: they contain no times.
  if (service.name != "dynamodb" || !answer.contains("Item")) ShowTimes(answer, times);
  return answer;
}

std::string RequestIdOf(const net::HttpResponse& response) {
  for (const char* name : {"x-amzn-RequestId", "x-amz-request-id", "x-amz-id"}) {
    if (const auto id = response.Header(name)) return std::string(*id);
  }
  return {};
}

AwsError DecodeAwsError(const net::HttpResponse& response) {
  AwsError error{
      .code = {}, .message = {}, .status = response.status, .request_id = RequestIdOf(response)};
  if (const auto type = response.Header("x-amzn-ErrorType")) error.code = ShortCode(*type);
  if (const auto json = ParseJson(response.body, "the answer"); json && json->is_object()) {
    if (error.code.empty()) error.code = ShortCode(TextMember(*json, {"__type", "code", "Code"}));
    error.message = TextMember(*json, {"message", "Message", "errorMessage"});
  } else if (const auto xml = ParseAwsXml(response.body); xml && xml->is_object()) {
    const Json inner = xml->contains("Error") ? (*xml)["Error"] : *xml;
    error.code = TextMember(inner, {"Code"});
    error.message = TextMember(inner, {"Message"});
    if (error.request_id.empty()) error.request_id = TextMember(*xml, {"RequestId"});
  }
  if (error.code.empty()) error.code = "HttpStatus" + std::to_string(response.status);
  return error;
}

}  // namespace muster::task
