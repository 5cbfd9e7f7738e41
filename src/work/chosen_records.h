#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "muster/migrate.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

// A target of a run whose documents choose targets, by the collection that was the first to write
// to it.
struct ChosenBody {
  std::string target;
  std::string collection;

  std::string ToJson() const;
  static Result<ChosenBody> FromJson(const std::string& json);
};

// The most targets that documents of a collection may choose.
inline constexpr size_t kMostChosen = 1'000;

// Admits the targets that the documents of a run choose, and records them in the store, so that all
// workers agree. A target that does not exist is created with the settings and mappings of the
// collection as transformed, by the first worker that needs it: if several do, one of them creates
// it. Each is admitted once per process. Thread-safe; the store must outlive it.
class ChosenRecords final : public pipeline::ChosenTargets {
 public:
  // The names of the run's collections.
  using Collections = std::function<Result<std::vector<std::string>>()>;

  ChosenRecords(store::Store& store, std::string run, Collections collections)
      : store_(store), run_(std::move(run)), collections_(std::move(collections)) {}

  Status Admit(const pipeline::Pipeline& pipeline, const std::string& collection,
               const std::string& target, const pipeline::Fence& fence) override;

 private:
  Status Prepare(const pipeline::Pipeline& pipeline, const std::string& collection,
                 const std::string& target, const std::string& incarnation);
  Status CheckCount(const std::string& collection, const std::string& own,
                    const std::string& target, const std::string& incarnation);
  Status CheckNotRead(const pipeline::Pipeline& pipeline, const std::string& target);
  Status Create(const pipeline::Pipeline& pipeline, const std::string& collection,
                const std::string& target);
  Status Record(const pipeline::Pipeline& pipeline, const std::string& collection,
                const std::string& target, const std::string& incarnation);
  // The collections of the run, by table. Asked once: there may be thousands.
  Result<std::map<std::string, std::string>> TablesRead(const pipeline::Pipeline& pipeline);
  // A collection as transformed, without aliases.
  Result<pipeline::Collection> ShapeOf(const pipeline::Pipeline& pipeline,
                                       const std::string& collection);

  store::Store& store_;
  const std::string run_;
  const Collections collections_;
  Mutex mutex_;
  // By incarnation, collection and target.
  std::set<std::tuple<std::string, std::string, std::string>> admitted_ GUARDED_BY(mutex_);
  std::optional<std::map<std::string, std::string>> tables_ GUARDED_BY(mutex_);
  // Of the collection that was asked for last: metadata may be large.
  std::pair<std::string, pipeline::Collection> shape_ GUARDED_BY(mutex_);
};

// The record of a target with this pipeline::TargetKey.
std::string ChosenKey(const std::string& run, const std::string& incarnation,
                      const std::string& table);

// The error for a collection that chooses a target of another, unless they are merged.
Error SharesTarget(const std::string& first, const std::string& second, const std::string& place);

// The incarnation in the keys of the records: a standalone migration has one for all collections.
const std::string& ChosenIncarnation(const std::string& run, const pipeline::Fence& fence);

// Looks whether collections that were merged have replaced documents of each other, in a run whose
// documents choose targets.
struct ChosenMerges {
  // How many documents were written, by collection.
  using Written = std::function<Result<std::map<std::string, int64_t>>()>;

  store::Store& store;
  const std::string& run;
  const std::string& incarnation;

  // Which document went where is not counted, so all targets count together. False: there is
  // nothing to check, or documents have chosen no targets but their collections'. kCorrupt: fewer
  // documents are there than were written.
  Result<bool> Check(const pipeline::Pipeline& pipeline, const std::set<std::string>& collections,
                     const Written& written) const;
};

}  // namespace muster::work
