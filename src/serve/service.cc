#include "serve/service.h"

#include <algorithm>
#include <functional>

#include "base/guard.h"
#include "base/json_fields.h"
#include "serve/route.h"
#include "serve/work_view.h"

#ifndef MUSTER_VERSION
#define MUSTER_VERSION "0"
#endif

namespace muster::serve {
namespace {

constexpr size_t kMaxTopics = 16;
constexpr int kMaxJobs = 4;

constexpr int64_t kMaxWorkers = 1'000'000;

enum class FieldType { kFlag, kNumber, kText };

struct Field {
  const char* name;
  FieldType type;
  int64_t least = 0;  // of a number
  int64_t most = 0;
};

struct ActionRoute {
  const char* pattern;
  std::vector<Field> fields;  // beside "preview"
  Result<Json> (Actions::*act)(const ActionCall&);
};

const std::vector<ActionRoute>& ActionRoutes() {
  static const std::vector<ActionRoute> kRoutes{
      {"/api/v1/stores/{}/migrations/{}/cancel", {}, &Actions::CancelMigration},
      {"/api/v1/stores/{}/migrations/{}/retry",
       {{"rank", FieldType::kNumber, 0, INT64_MAX}, {"task", FieldType::kText}},
       &Actions::RetryMigration},
      {"/api/v1/stores/{}/work/{}/items/{}/retry", {}, &Actions::RetryOne},
      {"/api/v1/stores/{}/work/{}/items/{}/release", {}, &Actions::ReleaseOne},
      {"/api/v1/stores/{}/work/{}/retry", {}, &Actions::RetryAll},
      {"/api/v1/stores/{}/replica-sets/{}/scale",
       {{"workers", FieldType::kNumber, 1, kMaxWorkers}},
       &Actions::Scale},
      {"/api/v1/stores/{}/replica-sets/{}/projections/{}/{}",
       {{"stream", FieldType::kText}},
       &Actions::SteerProjection},
      {"/api/v1/dead-letters/{}/redrive", {}, &Actions::Redrive}};
  return kRoutes;
}

const ActionRoute* FindAction(const std::string& path, std::vector<std::string>& names) {
  for (const ActionRoute& route : ActionRoutes()) {
    if (auto values = MatchPath(route.pattern, path)) {
      names = *std::move(values);
      return &route;
    }
  }
  return nullptr;
}

Error NoResource(const std::string& path) {
  return {Code::kNotFound, "there is no " + path, "/api/v1/openapi.yaml tells what there is"};
}

bool IsOf(const Json& value, FieldType type) {
  switch (type) {
    case FieldType::kFlag:
      return value.is_boolean();
    case FieldType::kNumber:
      return value.is_number_integer();
    case FieldType::kText:
      return value.is_string();
  }
  return false;
}

// All 64 bits are looked at before anything is made an int of them.
bool IsInRange(const Json& number, const Field& field) {
  if (number.is_number_unsigned() && number.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  return number.get<int64_t>() >= field.least && number.get<int64_t>() <= field.most;
}

Result<Json> ReadBody(const std::string& text, const ActionRoute& route) {
  MUSTER_ASSIGN(Json body, ParseJson(text.empty() ? "{}" : text, "body", {.depth = 4}));
  if (!body.is_object()) return Error{Code::kInvalid, "the body is no JSON object"};
  for (const auto& [name, value] : body.items()) {
    bool known = name == "preview" && IsOf(value, FieldType::kFlag);
    for (const Field& field : route.fields) {
      if (name != field.name || !IsOf(value, field.type)) continue;
      known = true;
      if (field.type == FieldType::kNumber && !IsInRange(value, field)) {
        return Error{Code::kInvalid, "the body's '" + name + "' is out of range",
                     "it is a number from " + std::to_string(field.least) + " to " +
                         std::to_string(field.most)};
      }
    }
    if (!known) {
      return Error{Code::kInvalid, "the body's '" + name + "' is unknown or of a wrong type",
                   "/api/v1/openapi.yaml tells what there is"};
    }
  }
  return body;
}

}  // namespace

Service::Service(std::unique_ptr<Site> site, const ServiceOptions& options, const Metrics& metrics)
    : site_(std::move(site)),
      options_(options),
      metrics_(metrics),
      audit_(options.audit_log, site_->env()),
      letters_(site_->dead_letters()),
      overview_(*site_, migrations_, replicas_, letters_, jobs_),
      actions_(*site_, letters_, jobs_, audit_),
      readings_(site_->env(), [this](const std::string& path) { return ReadNow(path); }),
      jobs_(kMaxJobs),
      live_(site_->env(), readings_, options.live) {}

struct Service::Resource {
  const char* pattern;
  std::function<Result<Json>(Service&, const std::vector<std::string>&)> read;
};

const std::vector<Service::Resource>& Service::Resources() {
  using Values = std::vector<std::string>;
  static const std::vector<Resource> kResources{
      {"/api/v1/overview", [](Service& all, const Values&) { return all.overview_.All(); }},
      {"/api/v1/failures", [](Service& all, const Values&) { return all.overview_.Failures(); }},
      {"/api/v1/dead-letters",
       [](Service& all, const Values&) { return all.overview_.DeadLetterFiles(); }},
      {"/api/v1/stores/{}/migrations/{}",
       [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         return MigrationViews::One(*store, names[1]);
       }},
      {"/api/v1/stores/{}/migrations/{}/tasks/{}/{}",
       [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         for (const plan::Phase phase : {plan::Phase::kExtract, plan::Phase::kTransform}) {
           if (names[2] != NameOf(phase)) continue;
           return MigrationViews::Task(*store, names[1], phase, names[3]);
         }
         return Error{Code::kNotFound, "there is no phase '" + names[2] + "'"};
       }},
      {"/api/v1/stores/{}/work/{}",
       [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         return WorkDetail(*store, names[1], all.series_, all.metrics_);
       }},
      {"/api/v1/stores/{}/work/{}/items",
       [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         return WorkItems(*store, names[1]);
       }},
      {"/api/v1/stores/{}/work/{}/items/{}",
       [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         return WorkItemDetail(*store, names[1], names[2]);
       }},
      {"/api/v1/stores/{}/replica-sets/{}", [](Service& all, const Values& names) -> Result<Json> {
         MUSTER_ASSIGN(const SiteStore* store, all.site_->FindStore(names[0]));
         return all.replicas_.One(*all.site_, *store, names[1], all.series_);
       }}};
  return kResources;
}

Result<Json> Service::ReadNow(const std::string& path) {
  for (const Resource& resource : Resources()) {
    if (const auto values = MatchPath(resource.pattern, path)) {
      return resource.read(*this, *values);
    }
  }
  return NoResource(path);
}

Result<std::shared_ptr<const Reading>> Service::Read(const Caller& /*any*/,
                                                     const std::string& path) {
  auto reading = readings_.Get(path);
  if (!reading->data) return reading->data.error();
  return reading;
}

Result<Json> Service::ReadLetters(const Caller& /*any*/, const std::string& file, int64_t after,
                                  int limit, const std::string& signature) {
  MUSTER_ASSIGN(const LetterPage page, letters_.Read(file, after, limit, signature));
  Json json{{"letters", Json::array()}};
  for (const LetterHead& letter : page.letters) {
    json["letters"].push_back({{"offset", letter.offset},
                               {"run", letter.run},
                               {"collection", letter.collection},
                               {"item", letter.item},
                               {"id", letter.id},
                               {"position", letter.position},
                               {"error", letter.error},
                               {"document", letter.document}});
  }
  if (page.next) json["next"] = *page.next;
  return json;
}

Result<std::shared_ptr<LiveHub::Seat>> Service::Follow(const Caller& /*any*/,
                                                       const std::vector<std::string>& topics,
                                                       const std::string& last_event_id) {
  if (topics.empty() || topics.size() > kMaxTopics) {
    return Error{Code::kInvalid, "a stream has 1 to " + std::to_string(kMaxTopics) + " topics",
                 "name them as ?topic=/api/v1/overview"};
  }
  for (const std::string& topic : topics) {
    // A run that is not there may come, of which the stream tells; a path that is none does not.
    const bool known = std::any_of(
        Resources().begin(), Resources().end(),
        [&](const Resource& resource) { return MatchPath(resource.pattern, topic).has_value(); });
    if (!known) return NoResource(topic);
  }
  auto seat = live_.Join(topics, last_event_id);
  if (seat == nullptr) {
    return Error{Code::kFull,
                 "as many look as may: " + std::to_string(live_.max_viewers()) + " viewers",
                 "close another page, or raise --max-viewers"};
  }
  return seat;
}

bool Service::IsAction(const std::string& path) const {
  std::vector<std::string> names;
  return FindAction(path, names) != nullptr;
}

void Service::NoteRefusal(const std::string& actor, const std::string& path,
                          const std::string& why) {
  audit_.AddRefusal(actor, path, why);
}

Result<Json> Service::Act(const Caller& caller, const std::string& path, const std::string& body) {
  ActionCall call{.names = {}, .body = {}, .actor = caller.actor};
  const ActionRoute* route = FindAction(path, call.names);
  if (route == nullptr) return NoResource(path);
  MUSTER_ASSIGN(call.body, ReadBody(body, *route));
  call.preview = call.body.value("preview", false);
  if (!call.preview) {
    std::string why;
    if (options_.read_only) why = "this server only shows";
    if (caller.role != Role::kOperator) why = "a viewer may only look";
    if (!why.empty()) {
      NoteRefusal(caller.actor, path, why);
      return Error{Code::kPermission, why, "the operator's token is in the server's token file"};
    }
    MUSTER_TRY(audit_.Add(caller.actor, path, "asked", {{"body", call.body}}));
  }
  auto result = GuardedThread(path, [&] { return (actions_.*route->act)(call); });
  if (call.preview) return result;
  readings_.Forget();
  static_cast<void>(
      audit_.Add(caller.actor, path, result ? "done" : "failed",
                 {{"text", result ? TextIn(*result, "what") : result.error().ToString()}}));
  return result;
}

Json Service::Session(const Caller& caller) {
  return {{"role", RoleName(caller.role)},
          {"read_only", options_.read_only || caller.role != Role::kOperator},
          {"actor", caller.actor},
          {"version", MUSTER_VERSION},
          {"now_at", Ms(site_->env().WallNow())},
          {"stores", overview_.Stores()},
          {"viewers", live_.viewers()},
          {"max_viewers", live_.max_viewers()}};
}

Status Service::Ready() {
  for (const SiteStore& store : site_->stores()) {
    if (const auto now = store.store->Now(); !now) {
      return Error{Code::kUnavailable, store.url + ": " + now.error().ToString()};
    }
  }
  return {};
}

}  // namespace muster::serve
