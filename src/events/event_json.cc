#include "events/event_json.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>

#include "core/json.h"
#include "core/json_grammar.h"
#include "core/json_scan.h"

namespace muster::events {
namespace {

// Verbatim if that makes one line of JSON: numbers keep their digits.
std::string Field(const char* name, const std::string& text) {
  const std::string key = std::string(",\"") + name;
  if (text.find('\n') == std::string::npos && !text.empty() && IsJson(text)) {
    return key + "\":" + text;
  }
  return key + "_text\":" + ToJsonText(text);
}

// A field's raw bytes; none if its name is escaped.
std::optional<std::string> RawField(const simdjson::padded_string& text, const char* name) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::value value;
  std::string_view raw;
  const bool found = parser.iterate(text).get(document) == simdjson::SUCCESS &&
                     document.find_field_unordered(name).get(value) == simdjson::SUCCESS &&
                     simdjson::to_json_string(value).get(raw) == simdjson::SUCCESS;
  if (!found) return std::nullopt;
  while (raw.ends_with(' ') || raw.ends_with('\t') || raw.ends_with('\r')) raw.remove_suffix(1);
  return std::string(raw);
}

// The line with null for its payload and metadata, which stay as they are written: a tree could not
// hold their numbers. Of the same length, for the positions of errors.
std::string WithoutContent(std::string_view line) {
  std::string rest(line);
  const size_t brace = SkipJsonSpace(line, 0);
  if (brace == line.size() || line[brace] != '{') return rest;
  JsonMembers members(line.substr(brace));
  while (const std::optional<JsonMember> member = members.Next()) {
    const bool is_content = JsonKeyIs(member->key, "payload") || JsonKeyIs(member->key, "metadata");
    if (!is_content || !IsJson(member->value)) continue;
    const auto begin = static_cast<size_t>(member->value.data() - line.data());
    const std::string_view nothing = member->value.size() < 4 ? "0" : "null";
    rest.replace(begin, member->value.size(), member->value.size(), ' ');
    rest.replace(begin, nothing.size(), nothing);
  }
  return rest;
}

// One input line of `events append`.
class AppendLine {
 public:
  AppendLine(std::string_view line, std::string_view origin, const Json& json)
      : bytes_(line), origin_(origin), json_(json) {}

  Result<StreamAppend> Read() const {
    if (!json_.is_object()) return Invalid("an event is an object");
    MUSTER_TRY(CheckFieldNames());
    StreamAppend append;
    NewEvent event;
    MUSTER_TRY(Text("stream", append.stream));
    MUSTER_TRY(Text("type", event.type));
    MUSTER_TRY(Text("id", event.id));
    if (append.stream.empty()) return Invalid("'stream' is missing");
    if (event.type.empty()) return Invalid("'type' is missing");
    MUSTER_TRY(Content("payload", event.payload));
    MUSTER_TRY(Content("metadata", event.metadata));
    MUSTER_ASSIGN(append.expected, Expected());
    append.events.push_back(std::move(event));
    return append;
  }

 private:
  Error Invalid(const std::string& what) const {
    return Error{Code::kInvalid, std::string(origin_) + ": " + what,
                 R"(write {"stream":"order-1","type":"Placed","payload":{…}})"};
  }

  Status CheckFieldNames() const {
    static constexpr std::string_view kFields[] = {
        "stream", "type",     "payload", "payload_text", "metadata", "metadata_text",
        "id",     "expected", "version", "position",     "time_ms"};
    for (const auto& [key, value] : json_.items()) {
      const bool known =
          std::find(std::begin(kFields), std::end(kFields), key) != std::end(kFields);
      if (!known) return Invalid("unknown event field '" + key + "'");
    }
    return {};
  }

  Status Text(const std::string& name, std::string& text) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return {};
    if (!found->is_string()) return Invalid("'" + name + "' is not a string");
    text = found->get<std::string>();
    return {};
  }

  // Verbatim, or the content of the _text string for what is not JSON.
  Status Content(const std::string& name, std::string& content) const {
    const std::string text = name + "_text";
    if (json_.contains(name) && json_.contains(text)) {
      return Invalid("'" + name + "' and '" + text + "' are both given");
    }
    if (json_.contains(text)) {
      if (!json_[text].is_string()) return Invalid("'" + text + "' is not a string");
      content = json_[text].get<std::string>();
    }
    if (!json_.contains(name)) return {};
    auto raw = RawField(bytes_, name.c_str());
    if (!raw)
      return Invalid("'" + name + "' is nested too deeply, or its name is written with escapes");
    content = *std::move(raw);
    return {};
  }

  Result<int64_t> Expected() const {
    int64_t expected = kAnyVersion;
    if (json_.contains("expected")) {
      if (!json_["expected"].is_number_integer()) return Invalid("'expected' is not a version");
      expected = json_["expected"].get<int64_t>();
    }
    if (!json_.contains("version")) return expected;
    const Json& version = json_["version"];
    if (!version.is_number_integer() || version.get<int64_t>() < 1) {
      return Invalid("'version' is not an event version");
    }
    const int64_t before = version.get<int64_t>() - 1;
    if (expected != kAnyVersion && expected != before) {
      return Invalid("'version' does not follow 'expected'");
    }
    return before;
  }

  const simdjson::padded_string bytes_;
  const std::string_view origin_;
  const Json& json_;
};

}  // namespace

std::string EventToJson(const Event& event) {
  return "{\"position\":" + std::to_string(event.position) +
         ",\"stream\":" + ToJsonText(event.stream) +
         ",\"version\":" + std::to_string(event.version) + ",\"type\":" + ToJsonText(event.type) +
         ",\"id\":" + ToJsonText(event.id) +
         ",\"time_ms\":" + std::to_string(event.time.time_since_epoch().count()) +
         Field("payload", event.payload) + Field("metadata", event.metadata) + "}";
}

Result<StreamAppend> AppendFromJson(std::string_view line, std::string_view origin) {
  MUSTER_ASSIGN(const Json json, ParseJson(WithoutContent(line), origin));
  return AppendLine(line, origin, json).Read();
}

}  // namespace muster::events
