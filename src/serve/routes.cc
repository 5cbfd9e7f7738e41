#include "serve/routes.h"

#include "serve/api.h"
#include "serve/assets.h"
#include "serve/live.h"
#include "serve/route.h"

namespace muster::serve {
namespace {

constexpr int64_t kMaxWorkers = 1'000'000;

using Type = Field::Type;

Route Live(const char* pattern, const char* summary, const char* schema, ReadView read) {
  return {.method = Method::kGet,
          .pattern = pattern,
          .role = Role::kViewer,
          .summary = summary,
          .replies = {{200, "The resource.", schema}},
          .fields = {},
          .handler = read};
}

Route Action(const char* pattern, const char* summary, Act act, std::vector<Field> fields = {}) {
  fields.insert(fields.begin(),
                {.name = "preview",
                 .type = Type::kFlag,
                 .description = "Only report what would be done. Viewers may do that, too."});
  return {.method = Method::kPost,
          .pattern = pattern,
          .role = Role::kOperator,
          .summary = summary,
          .replies = {{200, "What was done, or with `preview` would be done.", "ActionResult"}},
          .fields = std::move(fields),
          .handler = act};
}

Route Get(const char* pattern, std::optional<Role> role, const char* summary,
          std::vector<Reply> replies, Answer answer, std::vector<Field> query = {}) {
  return {.method = Method::kGet,
          .pattern = pattern,
          .role = role,
          .summary = summary,
          .replies = std::move(replies),
          .fields = std::move(query),
          .handler = answer};
}

}  // namespace

// A friend of Api, for its private handlers.
class RouteTable {
 public:
  static std::vector<Route> Make() {
    std::vector<Route> routes;
    AddProcess(routes);
    AddSession(routes);
    AddMigrations(routes);
    AddWork(routes);
    AddReplicas(routes);
    AddFailures(routes);
    for (const Asset& asset : Assets()) {
      routes.push_back(Get(asset.path.c_str(), {}, "", {}, &Api::PageFile));
    }
    return routes;
  }

 private:
  static void AddProcess(std::vector<Route>& routes) {
    routes.push_back(Get("/healthz", {}, "Liveness: 200 while the process serves.",
                         {{200, "`ok`", "text/plain"}}, &Api::Health));
    routes.push_back(
        Get("/readyz", {},
            "Readiness: whether every store answers. `/api/v1/session` names those "
            "that do not.",
            {{200, "`ok`", "text/plain"}, {503, "A store does not answer.", "text/plain"}},
            &Api::Ready));
    routes.push_back(Get("/metrics", Role::kViewer,
                         "Metrics in Prometheus' text format; docs/guide/metrics.md lists them.",
                         {{200, "Metrics.", "text/plain"}}, &Api::MetricsText));
    routes.push_back(Get("/api/v1/openapi.yaml", Role::kViewer, "This document.",
                         {{200, "This document.", "application/yaml"}}, &Api::Document));
  }

  static void AddSession(std::vector<Route>& routes) {
    routes.push_back(Get(
        "/login", {}, "The link printed at startup: sets the session cookie, leads to the page.",
        {{303,
          "Cookie `muster_session_PORT` (HttpOnly, SameSite=Strict; 12 hours, renewed by use); "
          "Location `/`."}},
        &Api::Login, {{.name = "token", .required = true}}));
    routes.push_back(Get("/api/v1/session", Role::kViewer, "Who is logged in, and what is served.",
                         {{200, "The session.", "Session"}}, &Api::Session));
    routes.push_back({.method = Method::kPost,
                      .pattern = "/api/v1/logout",
                      .role = Role::kViewer,
                      .summary = "Ends the session, on the server too, and deletes the cookie.",
                      .replies = {{204, "Logged out."}},
                      .fields = {},
                      .handler = static_cast<Answer>(&Api::Logout)});
    routes.push_back(
        Get("/api/v1/events", Role::kViewer, "Live events by SSE; see *Live* above.",
            {{200, "The stream.", "text/event-stream"},
             {503,
              "The viewer limit is reached (`too_many_viewers`); Retry-After says when to try "
              "again.",
              "Error"}},
            &Api::Events,
            {{.name = "topic",
              .type = Type::kTexts,
              .description = "The path of a GET marked `x-live`, percent-encoded as a query value.",
              .most = kMaxTopics,
              .required = true}}));
  }

  static void AddMigrations(std::vector<Route>& routes) {
    routes.push_back(Live("/api/v1/overview", "Everything in brief: the first page.", "Overview",
                          &Views::ReadOverview));
    routes.push_back(Live("/api/v1/stores/{store}/migrations/{migration}",
                          "One run of a plan, with its ranks, tasks, attempts and critical path.",
                          "Migration", &Views::ReadMigration));
    routes.push_back(Live("/api/v1/stores/{store}/migrations/{migration}/tasks/{phase}/{task}",
                          "One task, with input, output, error, log and equivalent commands.",
                          "TaskDetail", &Views::ReadTask));
    routes.push_back(Action("/api/v1/stores/{store}/migrations/{migration}/cancel",
                            "Cancels a run and stops what it has started, as `muster cancel`.",
                            &Actions::CancelMigration));
    routes.push_back(
        Action("/api/v1/stores/{store}/migrations/{migration}/retry",
               "Resumes a run with what has not succeeded, plus a rank or task if given, as "
               "`muster retry`; this server drives it.",
               &Actions::RetryMigration,
               {{.name = "rank",
                 .type = Type::kNumber,
                 .description = "Repeat this whole rank.",
                 .most = INT64_MAX},
                {.name = "task", .description = "Repeat this object or script."}}));
  }

  static void AddWork(std::vector<Route>& routes) {
    routes.push_back(Live("/api/v1/stores/{store}/work/{run}",
                          "A shared migration, in total and over time: throughput, bulk latency, "
                          "rejects.",
                          "WorkDetail", &Views::ReadWork));
    routes.push_back(Live("/api/v1/stores/{store}/work/{run}/items", "All items, in compact form.",
                          "Items", &Views::ReadItems));
    routes.push_back(Live("/api/v1/stores/{store}/work/{run}/items/{item}",
                          "One item, as `muster work show`.", "Item", &Views::ReadItem));
    routes.push_back(Action("/api/v1/stores/{store}/work/{run}/items/{item}/retry",
                            "Retries a quarantined or waiting item, as `muster work retry`.",
                            &Actions::RetryOne));
    routes.push_back(Action("/api/v1/stores/{store}/work/{run}/items/{item}/release",
                            "Takes an item from its holder, as `muster work release`.",
                            &Actions::ReleaseOne));
    routes.push_back(
        Action("/api/v1/stores/{store}/work/{run}/retry",
               "Retries all quarantined and waiting items, as `muster work retry --all`.",
               &Actions::RetryAll));
  }

  static void AddReplicas(std::vector<Route>& routes) {
    routes.push_back(Live("/api/v1/stores/{store}/replica-sets/{set}",
                          "A replica set: workers × slots, generation, projections, lag; as "
                          "`muster replica status --slots`.",
                          "ReplicaSet", &Views::ReadReplicaSet));
    routes.push_back(Action("/api/v1/stores/{store}/replica-sets/{set}/scale",
                            "Limits how many workers get partitions, as `muster replica scale`.",
                            &Actions::Scale,
                            {{.name = "workers",
                              .type = Type::kNumber,
                              .description = "Left out: all.",
                              .least = 1,
                              .most = kMaxWorkers}}));
    routes.push_back(
        Action("/api/v1/stores/{store}/replica-sets/{set}/projections/{projection}/{action}",
               "As `muster replica pause`, `resume` and `replay`. Replay needs the set's file "
               "(`--replica`).",
               &Actions::SteerProjection,
               {{.name = "stream", .description = "With replay: only this stream."}}));
  }

  static void AddFailures(std::vector<Route>& routes) {
    routes.push_back(Live("/api/v1/failures",
                          "Everything that has failed, grouped by the signature of its error.",
                          "Failures", &Views::ReadFailures));
    routes.push_back(Live("/api/v1/dead-letters", "The dead-letter files in the server's folder.",
                          "DeadLetterFiles", &Views::ReadDeadLetterFiles));
    routes.push_back(Get(
        "/api/v1/dead-letters/{file}", Role::kViewer, "Letters of a file, a page at a time.",
        {{200, "The letters.", "DeadLetters"}}, &Api::Letters,
        {{.name = "after",
          .type = Type::kNumber,
          .description = "Start with the letter at this offset: the `offset` or `next` of an "
                         "earlier page.",
          .most = INT64_MAX,
          .fallback = 0},
         {.name = "limit", .type = Type::kNumber, .least = 1, .most = kMaxLetters, .fallback = 100},
         {.name = "signature", .description = "Only letters with this error signature."}}));
    routes.push_back(Action("/api/v1/dead-letters/{file}/redrive",
                            "Writes the letters to their run's sink, as `muster work redrive`.",
                            &Actions::Redrive));
  }
};

const std::vector<Route>& Routes() {
  static const std::vector<Route> kRoutes = RouteTable::Make();
  return kRoutes;
}

RouteMatch FindRoute(std::string_view method, std::string_view path) {
  const auto wanted = method == "HEAD" ? Method::kGet : kMethods.Find(method);
  RouteMatch match;
  for (const Route& route : Routes()) {
    auto names = MatchPath(route.pattern, path);
    if (!names) continue;
    if (route.method == wanted) return {&route, *std::move(names), {}};
    if (!match.allowed.empty()) match.allowed += ", ";
    match.allowed += kMethods.NameOf(route.method);
    if (route.method == Method::kGet) match.allowed += ", HEAD";
  }
  return match;
}

}  // namespace muster::serve
