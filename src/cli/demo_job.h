#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "sql/sqlite.h"

namespace muster::cli {

// The job of `muster demo work`: shards of generated orders are migrated into a SQLite target by
// workers that share the shards through leases.

inline constexpr int kDemoShards = 12;
inline constexpr int64_t kDemoDocuments = 1'000;  // in each shard
inline constexpr char kDemoRun[] = "demo";

// The files of one demo.
struct DemoFolder {
  std::string path;
  std::string StorePath() const { return path + "/store.db"; }
  std::string StoreUrl() const { return "sqlite:" + StorePath(); }
  std::string TargetPath() const { return path + "/target.db"; }
};

std::string DemoDocument(int shard, int64_t number);

// The target: documents, and for every item the highest epoch seen, with its progress. Both change
// in one transaction: a write from an older epoch fails, and a batch counts exactly once.
class DemoTarget {
 public:
  static Result<std::unique_ptr<DemoTarget>> Open(const std::string& path);

  struct Known {
    std::optional<muster::pipeline::Progress> progress;
    bool sealed = false;
  };
  // Fences off older epochs of this item; returns its stored progress.
  Result<Known> OpenFence(const std::string& item, int64_t epoch);

  // Adds documents. kLeaseLost: this epoch has been fenced off.
  Status Append(const std::string& item, int64_t epoch, const pipeline::Batch& batch,
                const muster::pipeline::Progress& after);

  // Closes the fence permanently; returns the item's progress.
  Result<std::optional<muster::pipeline::Progress>> Seal(const std::string& item, int64_t epoch);

  struct Comparison {
    int64_t expected = 0;
    int64_t found = 0;    // rows
    int64_t missing = 0;  // documents not found
    int64_t wrong = 0;    // rows that differ from the source
  };
  // Compares every document with its expected content.
  Result<Comparison> Compare();

 private:
  explicit DemoTarget(std::unique_ptr<sql::SqliteDb> db) : db_(std::move(db)) {}
  std::unique_ptr<sql::SqliteDb> db_;
};

// One worker process; `say` receives its events.
Status RunDemoWorker(const DemoFolder& folder, const std::string& name, Env& env,
                     const std::function<void(const std::string& event)>& say,
                     std::stop_token stop);

}  // namespace muster::cli
