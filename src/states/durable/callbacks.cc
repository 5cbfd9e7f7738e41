#include "states/durable/callbacks.h"

#include <utility>

#include "core/record_fields.h"
#include "muster/store.h"
#include "states/durable/load_flow.h"

namespace muster::states {
namespace {

constexpr RecordFields<CallbackAnswer, 3> kAnswerFields{{
    {"output",
     [](const CallbackAnswer& from, Json& json, std::string_view name) {
       if (from.output) json[name] = *from.output;
     },
     // Null is an output, too.
     [](JsonFields& fields, CallbackAnswer& to, std::string_view name) {
       if (const Json* found = fields.Find(name)) to.output = *found;
     }},
    {"error",
     [](const CallbackAnswer& from, Json& json, std::string_view name) {
       if (!from.output) json[name] = from.error;
     },
     [](JsonFields& fields, CallbackAnswer& to, std::string_view name) {
       fields.Read(name, to.error);
     }},
    {"cause",
     [](const CallbackAnswer& from, Json& json, std::string_view name) {
       if (!from.output) json[name] = from.cause;
     },
     [](JsonFields& fields, CallbackAnswer& to, std::string_view name) {
       fields.Read(name, to.cause);
     }},
}};
constexpr RecordTable<CallbackAnswer, 3> kAnswerTable{kCallbackFormat, kAnswerFields};

struct Beat {
  int64_t time = 0;  // milliseconds since 1970, by the store's clock
};
constexpr RecordTable<Beat, 1> kBeatTable{kCallbackFormat, {{Always<Beat, &Beat::time>("time")}}};

std::string BeatKey(const std::string& token) { return token + "#heartbeat"; }

// The key of the flow with this token, "NAME:PATH:ENTRY:RETRY". Inside a distributed Map, NAME is
// the iteration's: "EXECUTION/PATH".
Result<std::string> KeyOfToken(const std::string& token) {
  const size_t first = token.find(':');
  const size_t second = first == std::string::npos ? first : token.find(':', first + 1);
  if (second == std::string::npos) return Error{Code::kInvalid, "bad task token '" + token + "'"};
  return KeyOf(token.substr(0, token.find_first_of(":/")),
               token.substr(first + 1, second - first - 1));
}

Status CheckWaits(store::Store& store, const std::string& key, const std::string& token) {
  auto record = LoadFlow(store, key);
  if (!record && record.error().code != Code::kNotFound) return record.error();
  if (!record || record->flow.ended() || !record->flow.task || record->flow.task->token != token) {
    return Error{Code::kNotFound, "no task waits for the token '" + token + "'",
                 "it may have timed out or been answered"};
  }
  return {};
}

// The answer is stored, and the flow finds it when it polls. This only makes it due at once.
Status Wake(store::Store& store, const std::string& key, const std::string& token) {
  const auto wake =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    if (!stored) return std::nullopt;
    MUSTER_ASSIGN(FlowRecord record, FlowCodec(store).Decode(*std::move(stored)));
    const bool waits = record.flow.wants == Wants::kCallback && record.flow.task &&
                       record.flow.task->token == token;
    // Not waiting yet: it looks for the answer when it does.
    if (!waits || !record.record.owner.empty()) return std::nullopt;
    return store::Change::Put(std::move(record.record), store::Due::AtOnce());
  };
  Status woken = store::Update(store, kKind, key, wake);
  if (woken || !IsTransient(woken.error().code)) return woken;
  return Error{Code::kUnavailable, "the answer is stored, but the execution could not be woken",
               "send it again"};
}

}  // namespace

Status AnswerCallback(store::Store& store, const std::string& token, const CallbackAnswer& answer) {
  MUSTER_ASSIGN(const std::string key, KeyOfToken(token));
  MUSTER_TRY(CheckWaits(store, key, token));
  const store::Record record{
      .kind = kCallbackKind, .queue = "none", .key = token, .body = kAnswerTable.ToText(answer)};
  const auto create =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    if (!stored) return store::Change::Put(record, store::Due::Never());
    if (stored->body == record.body) return std::nullopt;
    return Error{Code::kConflict, "the task has been answered already"};
  };
  MUSTER_TRY(store::Update(store, kCallbackKind, token, create));
  return Wake(store, key, token);
}

Status BeatCallback(store::Store& store, const std::string& token) {
  MUSTER_ASSIGN(const std::string key, KeyOfToken(token));
  MUSTER_TRY(CheckWaits(store, key, token));
  MUSTER_ASSIGN(const WallTime now, store.Now());
  const std::string beat_key = BeatKey(token);
  const std::string body = ToJsonText(kBeatTable.ToJson({.time = now.time_since_epoch().count()}));
  return store::Update(
      store, kCallbackKind, beat_key,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        store::Record beat = std::move(stored).value_or(
            store::Record{.kind = kCallbackKind, .queue = "none", .key = beat_key});
        beat.body = body;
        return store::Change::Put(std::move(beat), store::Due::Never());
      });
}

Result<std::optional<CallbackAnswer>> FindAnswer(store::Store& store, const std::string& token) {
  MUSTER_ASSIGN(const auto stored, store.Get(kCallbackKind, token));
  if (!stored) return std::nullopt;
  MUSTER_ASSIGN(CallbackAnswer answer,
                kAnswerTable.Parse(stored->body, "the answer to '" + token + "'"));
  return std::optional(std::move(answer));
}

Result<std::optional<WallTime>> FindBeat(store::Store& store, const std::string& token) {
  MUSTER_ASSIGN(const auto stored, store.Get(kCallbackKind, BeatKey(token)));
  if (!stored) return std::nullopt;
  MUSTER_ASSIGN(const Beat beat,
                kBeatTable.Parse(stored->body, "the heartbeat of '" + token + "'"));
  return std::optional(WallTime(milliseconds(beat.time)));
}

}  // namespace muster::states
