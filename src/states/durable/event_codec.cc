#include "states/durable/flow_codec.h"

#include "states/durable/object_text.h"
#include "states/run/interpreter.h"

namespace muster::states {
namespace {

constexpr size_t kMaxStoredPayload = 8 * 1024;

int64_t NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}
std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}
Value TakeAt(Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? nullptr : MakeValue(std::move(*found));
}

}  // namespace

std::string EventToStored(const Event& event) {
  ObjectText json;
  json.Number("id", event.id).Text("type", event.type).Number("time", ToMillis(event.time));
  if (event.previous != 0) json.Number("previous", event.previous);
  if (!event.name.empty()) json.Text("name", event.name);
  if (event.payload) {
    if (JsonBytes(*event.payload, kMaxStoredPayload) <= kMaxStoredPayload) {
      json.Value("payload", *event.payload);
    } else {
      json.Flag("truncated");
    }
  }
  if (!event.error.empty()) json.Text("error", event.error);
  if (!event.cause.empty()) json.Text("cause", event.cause);
  if (!event.details.is_null()) json.Value("details", event.details);
  return std::move(json).Close();
}

Event EventFromStored(Json&& json) {
  Event event;
  event.id = NumberAt(json, "id");
  event.type = TextAt(json, "type");
  event.time = FromMillis(NumberAt(json, "time"));
  event.previous = NumberAt(json, "previous");
  event.name = TextAt(json, "name");
  event.payload = TakeAt(json, "payload");
  event.truncated = json.contains("truncated");
  event.error = TextAt(json, "error");
  event.cause = TextAt(json, "cause");
  if (json.contains("details")) event.details = std::move(json["details"]);
  return event;
}

}  // namespace muster::states
