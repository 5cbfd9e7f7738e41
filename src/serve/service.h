#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/metrics.h"
#include "muster/result.h"
#include "serve/access.h"
#include "serve/actions.h"
#include "serve/audit_log.h"
#include "serve/dead_letter_index.h"
#include "serve/jobs.h"
#include "serve/live.h"
#include "serve/migration_view.h"
#include "serve/overview.h"
#include "serve/readings.h"
#include "serve/replica_view.h"
#include "serve/series.h"
#include "serve/site.h"

namespace muster::serve {

constexpr int kMaxLetters = 1'000;  // in one answer

struct ServiceOptions {
  bool read_only = false;
  std::string audit_log;
  LiveOptions live = {};
};

// What callers may see and do. Everything is asked for in somebody's name, and this is where it is
// decided whether they may: viewers look and preview, operators act, and every action is in the
// audit log before it is done. What is not in the tables of its .cc does not exist. Thread-safe.
class Service {
 public:
  // `metrics` are this process'; they must outlive it.
  Service(std::unique_ptr<Site> site, const ServiceOptions& options, const Metrics& metrics);

  // kNotFound: there is no such resource.
  Result<std::shared_ptr<const Reading>> Read(const Caller& caller, const std::string& path);

  Result<Json> ReadLetters(const Caller& caller, const std::string& file, int64_t after, int limit,
                           const std::string& signature);

  // A seat for live events of some resources. kNotFound: one of them is none that can be followed.
  // kFull: as many look as may.
  Result<std::shared_ptr<LiveHub::Seat>> Follow(const Caller& caller,
                                                const std::vector<std::string>& topics,
                                                const std::string& last_event_id);
  void Serve(LiveHub::Seat& seat, WebStream& stream) { live_.Serve(seat, stream); }

  // kPermission: not by this caller. kNotFound: there is no such action. kInvalid: not that body.
  Result<Json> Act(const Caller& caller, const std::string& path, const std::string& body);

  // Whether somebody may act at all.
  bool IsAction(const std::string& path) const;
  // Something was refused before it came here.
  void NoteRefusal(const std::string& actor, const std::string& path, const std::string& why);

  Json Session(const Caller& caller);
  Status Ready();  // kUnavailable names the store that does not answer
  int viewers() const { return live_.viewers(); }
  const Site& site() const { return *site_; }
  Readings& readings() { return readings_; }

 private:
  struct Resource;
  static const std::vector<Resource>& Resources();
  Result<Json> ReadNow(const std::string& path);

  const std::unique_ptr<Site> site_;
  const ServiceOptions options_;
  const Metrics& metrics_;
  AuditLog audit_;
  SeriesBook series_;
  DeadLetterIndex letters_;
  MigrationViews migrations_;
  ReplicaViews replicas_;
  Overview overview_;
  Actions actions_;
  Readings readings_;
  Jobs jobs_;     // whose threads use all but readings
  LiveHub live_;  // whose thread uses all
};

}  // namespace muster::serve
