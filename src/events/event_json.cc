#include "events/event_json.h"

#include <simdjson.h>

#include "base/json.h"

namespace muster {
namespace {

// Kept as it is where that makes a line of JSON: numbers keep their digits.
std::string Field(const char* name, const std::string& text) {
  const std::string key = std::string(",\"") + name;
  if (text.find('\n') == std::string::npos && !text.empty() && Json::accept(text)) {
    return key + "\":" + text;
  }
  return key + "_text\":" + ToJsonText(text);
}

// The bytes of a field of an object, as they are written.
std::string RawField(const simdjson::padded_string& text, const char* name) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::value value;
  std::string_view raw;
  const bool found = parser.iterate(text).get(document) == simdjson::SUCCESS &&
                     document.find_field_unordered(name).get(value) == simdjson::SUCCESS &&
                     simdjson::to_json_string(value).get(raw) == simdjson::SUCCESS;
  if (!found) return "";
  while (raw.ends_with(' ') || raw.ends_with('\t') || raw.ends_with('\r')) raw.remove_suffix(1);
  return std::string(raw);
}

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
  MUSTER_ASSIGN(const Json json, ParseJson(line, origin));
  const auto invalid = [&](const std::string& what) {
    return Error{Code::kInvalid, std::string(origin) + ": " + what,
                 R"(write {"stream":"order-1","type":"Placed","payload":{…}})"};
  };
  if (!json.is_object()) return invalid("an event is an object");
  for (const auto& [key, value] : json.items()) {
    const bool known = key == "stream" || key == "type" || key == "payload" || key == "metadata" ||
                       key == "id" || key == "expected";
    if (!known) return invalid("an event has no field '" + key + "'");
  }
  StreamAppend append;
  NewEvent event;
  const auto text = [&](const char* name, std::string& value) {
    if (json.contains(name) && json[name].is_string()) value = json[name].get<std::string>();
    return !value.empty();
  };
  if (!text("stream", append.stream)) return invalid("'stream' is missing");
  if (!text("type", event.type)) return invalid("'type' is missing");
  text("id", event.id);
  const simdjson::padded_string bytes(line);
  if (json.contains("payload")) event.payload = RawField(bytes, "payload");
  if (json.contains("metadata")) event.metadata = RawField(bytes, "metadata");
  if (json.contains("expected")) {
    if (!json["expected"].is_number_integer()) return invalid("'expected' is no version");
    append.expected = json["expected"].get<int64_t>();
  }
  append.events.push_back(std::move(event));
  return append;
}

}  // namespace muster
