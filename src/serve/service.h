#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/metrics.h"
#include "muster/result.h"
#include "serve/access.h"
#include "serve/actions.h"
#include "serve/audit_log.h"
#include "serve/dead_letter_index.h"
#include "serve/jobs.h"
#include "serve/live.h"
#include "serve/readings.h"
#include "serve/routes.h"
#include "serve/site.h"
#include "serve/views.h"

namespace muster::serve {

struct ServiceOptions {
  bool read_only = false;
  std::string audit_log;
  LiveOptions live = {};
};

// What callers may see and do. Viewers read and preview, operators act, and every action is in the
// audit log before it is done. Thread-safe.
class Service {
 public:
  // `metrics` are this process'; they must outlive it.
  Service(std::unique_ptr<Site> site, const ServiceOptions& options, const Metrics& metrics);

  // The resource at a path. kNotFound: no such resource.
  Result<std::shared_ptr<const Reading>> Read(const std::string& path);

  Result<Json> ReadLetters(const std::string& file, int64_t after, int limit,
                           const std::string& signature);

  // A subscription to live resources. kNotFound: a topic is not a live resource. kFull: the viewer
  // limit is reached.
  Result<std::shared_ptr<LiveHub::Subscription>> Follow(const std::vector<std::string>& topics,
                                                        const std::string& last_event_id);
  void Serve(LiveHub::Subscription& subscription, WebStream& stream) {
    live_.Serve(subscription, stream);
  }

  // The parts of a request for an action: the values in its path, and its body, which is checked.
  struct Request {
    const Names& names;
    const Json& body;
  };
  // kPermission: not allowed for this caller, or the server is read-only.
  Result<Json> Act(const Caller& caller, const std::string& path, const Route& route,
                   const Request& request);

  // Audits a request that was refused before it got here.
  void NoteRefusal(const std::string& actor, const std::string& path, const std::string& why);

  Json Session(const Caller& caller);
  Status Ready();  // kUnavailable names the store that does not answer
  int viewers() const { return live_.viewers(); }

 private:
  Result<Json> ReadNow(const std::string& path);
  // Why the caller may not act; empty: allowed.
  std::string WhyNot(const Caller& caller, const Route& route) const;

  const std::unique_ptr<Site> site_;
  const ServiceOptions options_;
  AuditLog audit_;
  DeadLetterIndex letters_;
  Views views_;
  Actions actions_;
  Readings readings_;
  Jobs jobs_;     // its threads use all but the readings
  LiveHub live_;  // its thread uses all
};

}  // namespace muster::serve
