#include "serve/service.h"

#include "core/guard.h"
#include "core/json_fields.h"

#ifndef MUSTER_VERSION
#define MUSTER_VERSION "0"
#endif

namespace muster::serve {
namespace {

constexpr int kMaxJobs = 4;

Error NotLive(const std::string& path) {
  return {Code::kNotFound, "not found: " + path, "see /api/v1/openapi.yaml"};
}

}  // namespace

Service::Service(std::unique_ptr<Site> site, const ServiceOptions& options, const Metrics& metrics)
    : site_(std::move(site)),
      options_(options),
      audit_(options.audit_log, site_->env()),
      letters_(site_->dead_letters()),
      views_(*site_, letters_, jobs_, metrics),
      actions_(*site_, letters_, jobs_, audit_),
      readings_(site_->env(), [this](const std::string& path) { return ReadNow(path); }),
      jobs_(kMaxJobs),
      live_(site_->env(), readings_, options.live) {}

Result<Json> Service::ReadNow(const std::string& path) {
  const RouteMatch match = FindRoute("GET", path);
  if (match.route == nullptr || !match.route->IsLive()) return NotLive(path);
  return (views_.*std::get<ReadView>(match.route->handler))(match.names);
}

Result<std::shared_ptr<const Reading>> Service::Read(const std::string& path) {
  auto reading = readings_.Get(path);
  if (!reading->data) return reading->data.error();
  return reading;
}

Result<Json> Service::ReadLetters(const std::string& file, int64_t after, int limit,
                                  const std::string& signature) {
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

Result<std::shared_ptr<LiveHub::Subscription>> Service::Follow(
    const std::vector<std::string>& topics, const std::string& last_event_id) {
  if (topics.empty() || topics.size() > kMaxTopics) {
    return Error{Code::kInvalid, "a stream needs 1 to " + std::to_string(kMaxTopics) + " topics",
                 "name them as ?topic=/api/v1/overview"};
  }
  for (const std::string& topic : topics) {
    // A run that does not exist may be created later; a path without a route never works.
    const RouteMatch match = FindRoute("GET", topic);
    if (match.route == nullptr || !match.route->IsLive()) return NotLive(topic);
  }
  auto subscription = live_.Join(topics, last_event_id);
  if (subscription == nullptr) {
    return Error{Code::kFull, "viewer limit (" + std::to_string(live_.max_viewers()) + ") reached",
                 "close another page, or raise --max-viewers"};
  }
  return subscription;
}

void Service::NoteRefusal(const std::string& actor, const std::string& path,
                          const std::string& why) {
  audit_.AddRefusal(actor, path, why);
}

std::string Service::WhyNot(const Caller& caller, const Route& route) const {
  if (!route.IsOpenTo(caller.role)) return "viewers cannot perform actions";
  return options_.read_only ? "the server is read-only" : "";
}

Result<Json> Service::Act(const Caller& caller, const std::string& path, const Route& route,
                          const Request& request) {
  const ActionCall call{.names = request.names,
                        .body = request.body,
                        .preview = request.body.value("preview", false),
                        .actor = caller.actor};
  if (!call.preview) {
    if (const std::string why = WhyNot(caller, route); !why.empty()) {
      NoteRefusal(caller.actor, path, why);
      return Error{Code::kPermission, why, "the operator's token is in the server's token file"};
    }
    MUSTER_TRY(audit_.Add(caller.actor, path, "asked", {{"body", call.body}}));
  }
  const auto act = std::get<serve::Act>(route.handler);
  auto result = GuardedThread(path, [&] { return (actions_.*act)(call); });
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
          {"stores", views_.Stores()},
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
