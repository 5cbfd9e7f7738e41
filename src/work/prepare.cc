#include <algorithm>
#include <set>
#include <utility>

#include "core/backoff.h"
#include "core/escape_bytes.h"
#include "core/interrupt.h"
#include "core/planted_bug.h"
#include "pipeline/pipeline.h"
#include "work/coordinator.h"
#include "work/records.h"

namespace muster::work {
namespace {

constexpr size_t kPageItems = 1'000;
constexpr size_t kPageBytes = 250 * 1024;  // of names: a page's body must fit in a record

Result<RunBody> ReadRunOf(WorkCoordinator& coordinator) {
  MUSTER_ASSIGN(const std::optional<store::Record> run,
                coordinator.store().Get(kRunKind, coordinator.run()));
  if (!run) {
    return Error{Code::kIncompatible, "run '" + coordinator.run() + "' is gone from the store",
                 kGoneHint};
  }
  MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(run->body));
  MUSTER_TRY(CheckGoesOn(coordinator.run(), body));
  return body;
}

// The preparation ended but the run is not ready: the store has lost commits.
Status BeginAgainIfForgotten(WorkCoordinator& coordinator) {
  MUSTER_ASSIGN(const std::optional<store::Record> record,
                coordinator.store().Get(kPrepareKind, coordinator.run()));
  if (record) {
    MUSTER_ASSIGN(const PrepareBody body, PrepareBody::FromJson(record->body));
    if (!body.done) return {};
  }
  MUSTER_ASSIGN(const RunBody run, ReadRunOf(coordinator));
  if (run.ready) return {};
  return BeginPreparation(coordinator.store(), coordinator.run(), run.incarnation);
}

// Creates the items of a run, page by page, resuming where a former holder of the preparation
// stopped.
class Preparation {
 public:
  Preparation(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline, store::Lease& lease,
              const std::string& incarnation, PrepareBody start)
      : coordinator_(coordinator),
        pipeline_(pipeline),
        lease_(lease),
        incarnation_(incarnation),
        done_(std::move(start)),
        renewed_(coordinator.env().MonoNow()) {}

  Status Run(const pipeline::CollectionFilter& allowed, const std::stop_token& stop) {
    MUSTER_TRY(pipeline::CheckDeletes(pipeline_.source, pipeline_.sink));
    MUSTER_ASSIGN(const std::vector<pipeline::Collection> collections, Select(allowed));
    MUSTER_TRY(By(Party::kSink, pipeline::CheckTargets(pipeline_, collections)));
    if (done_.selected != next_.selected) MUSTER_TRY(Save());
    size_t skip = done_.partitions;
    for (size_t i = done_.collection; i < collections.size(); ++i) {
      MUSTER_TRY(Add(i, collections[i], skip, stop));
      skip = 0;
    }
    if (!page_.items.empty()) MUSTER_TRY(WritePage());
    // After the collections: templates would apply to their targets.
    if (Old()) MUSTER_TRY(Save());
    MUSTER_ASSIGN(const std::string metadata,
                  By(Party::kSource, pipeline_.source.GlobalMetadata()));
    MUSTER_TRY(By(Party::kSink, pipeline_.sink.PrepareGlobal(metadata, /*evaluate=*/false)));
    MUSTER_TRY(MakeReady());
    done_.done = true;
    return lease_.End(done_.ToJson());
  }

 private:
  // The same as when the preparation began: by now the source may list the run's own targets, too.
  Result<std::vector<pipeline::Collection>> Select(const pipeline::CollectionFilter& allowed) {
    const std::set<std::string> chosen(done_.selected.begin(), done_.selected.end());
    const auto selects = [&](const std::string& name) {
      return (!allowed || allowed(name)) && (chosen.empty() || chosen.contains(name));
    };
    MUSTER_ASSIGN(std::vector<pipeline::Collection> collections,
                  By(Party::kSource, pipeline::SelectCollections(pipeline_.source, selects)));
    if (!chosen.empty()) {
      if (collections.size() != chosen.size()) return SourceChanged();
      return collections;
    }
    size_t bytes = 0;
    for (const pipeline::Collection& one : collections) bytes += EscapeBytes(one.name).size() + 3;
    if (bytes > kPageBytes) return collections;
    for (const pipeline::Collection& one : collections) next_.selected.push_back(one.name);
    return collections;
  }

  Status Add(size_t index, const pipeline::Collection& collection, size_t skip,
             const std::stop_token& stop) {
    MUSTER_ASSIGN(const pipeline::Collection target, pipeline_.transforms.Target(collection));
    MUSTER_TRY(By(Party::kSink, pipeline_.sink.Prepare(target, /*evaluate=*/false)));
    MUSTER_ASSIGN(const std::vector<pipeline::Partition> partitions,
                  By(Party::kSource, pipeline_.source.Partitions(collection.name)));
    for (size_t i = skip; i < partitions.size(); ++i) {
      if (stop.stop_requested()) return Error{Code::kCancelled, "stopped on request"};
      items_.push_back(NewItem(coordinator_.run(), ItemBody::Of(partitions[i])));
      page_.items.push_back(NameOf(partitions[i]));
      page_bytes_ += page_.items.back().size();
      next_.collection = index;
      next_.partitions = i + 1;
      if (page_.items.size() == kPageItems || page_bytes_ >= kPageBytes) MUSTER_TRY(WritePage());
    }
    // Many collections without partitions take time too.
    if (page_.items.empty() && Old()) {
      next_.collection = index + 1;
      next_.partitions = 0;
      MUSTER_TRY(Save());
    }
    return {};
  }

  // Half of the lease has passed without a renewal.
  bool Old() const {
    return coordinator_.env().MonoNow() - renewed_ > coordinator_.terms().lease / 2;
  }

  Status WritePage() {
    const int number = done_.pages + 1;
    MUSTER_ASSIGN(const std::vector<store::Written> written,
                  Retry([&] { return coordinator_.store().Write(items_); }));
    MUSTER_TRY(CheckItems(written));
    const std::string key = PageKey(coordinator_.run(), number);
    const store::Change change = store::Change::Put(
        store::Record{
            .kind = kPageKind, .queue = coordinator_.run(), .key = key, .body = page_.ToJson()},
        store::Due::Never());
    MUSTER_TRY(Retry([&] { return coordinator_.store().Write({&change, 1}); }));
    MUSTER_TRY(CheckPage(key));
    next_.pages = number;
    items_.clear();
    page_.items.clear();
    page_bytes_ = 0;
    return Save();
  }

  // An item that exists is just as good if it is the same range of the source.
  Status CheckItems(const std::vector<store::Written>& written) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (written[i].applied) continue;
      MUSTER_ASSIGN(const std::optional<store::Record> stored, Retry([&] {
                      return coordinator_.store().Get(kWorkKind, items_[i].record.key);
                    }));
      if (!stored) return Error{Code::kUnavailable, "item " + page_.items[i] + " is not there yet"};
      const auto there = ItemBody::FromJson(stored->body);
      if (!there) continue;  // counts as quarantined
      MUSTER_ASSIGN(const ItemBody ours, ItemBody::FromJson(items_[i].record.body));
      if (there->partition.end != ours.partition.end) return SourceChanged();
    }
    return {};
  }

  // An existing page must match what we would have written.
  Status CheckPage(const std::string& key) {
    MUSTER_ASSIGN(const std::optional<store::Record> stored,
                  Retry([&] { return coordinator_.store().Get(kPageKind, key); }));
    if (!stored) return Error{Code::kUnavailable, "page " + key + " is not there yet"};
    MUSTER_ASSIGN(const PageBody body, PageBody::FromJson(stored->body));
    return body.items == page_.items ? Status() : SourceChanged();
  }

  Error SourceChanged() const {
    return Error{
        Code::kConflict,
        "the source has changed since the preparation of run '" + coordinator_.run() +
            "' began: its partitions are not the same any more",
        "start the migration under another name with --run, with a source that does not change"};
  }

  Status Save() {
    done_ = next_;
    MUSTER_TRY(lease_.Renew(done_.ToJson()));
    renewed_ = coordinator_.env().MonoNow();
    return {};
  }

  // The pages are those of the incarnation that was read before the claim: a reset removes them.
  Status MakeReady() {
    const auto update =
        [&](std::optional<store::Record> run) -> Result<std::optional<store::Change>> {
      if (!run) return Error{Code::kIncompatible, "the run is gone from the store"};
      MUSTER_ASSIGN(RunBody body, RunBody::FromJson(run->body));
      if (body.incarnation != incarnation_)
        return Error{Code::kCancelled, "another incarnation of the run has begun"};
      if (body.ready) return std::nullopt;
      body.ready = true;
      body.pages = done_.pages;
      run->body = body.ToJson();
      return store::Change::Put(*std::move(run), store::Due::Never());
    };
    return store::Update(coordinator_.store(), kRunKind, coordinator_.run(), update);
  }

  template <class Call>
  auto Retry(Call call) -> decltype(call()) {
    return RetryBefore(lease_.deadline(), coordinator_.env(), std::move(call));
  }

  WorkCoordinator& coordinator_;
  pipeline::Pipeline& pipeline_;
  store::Lease& lease_;
  const std::string& incarnation_;
  PrepareBody done_;  // as stored
  PrepareBody next_ = done_;
  MonoTime renewed_;
  std::vector<store::Change> items_;
  PageBody page_;
  size_t page_bytes_ = 0;
};

}  // namespace

Result<bool> PrepareWork(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                         const pipeline::CollectionFilter& allowed, std::stop_token stop) {
  MUSTER_ASSIGN(const RunBody run, ReadRunOf(coordinator));
  if (run.ready) return true;
  const WorkTerms& terms = coordinator.terms();
  MUSTER_ASSIGN(std::vector<store::Lease> claimed,
                store::Lease::Claim(coordinator.store(),
                                    {.kind = kPrepareKind,
                                     .queue = coordinator.run(),
                                     .owner = coordinator.worker(),
                                     .terms = {.lease = terms.lease, .max_lease = terms.max_lease}},
                                    coordinator.env(), stop));
  if (claimed.empty()) {
    MUSTER_TRY(BeginAgainIfForgotten(coordinator));
    return false;
  }
  store::Lease& lease = claimed.front();
  const auto start = PrepareBody::FromJson(lease.body());
  if (!start) {
    // Another version may be able to read it.
    static_cast<void>(lease.Release());
    return start.error().Within("preparing run '" + coordinator.run() + "'");
  }
  const Status prepared = [&] {
    const InterruptScope scope(stop);
    return Preparation(coordinator, pipeline, lease, run.incarnation, *start).Run(allowed, stop);
  }();
  if (prepared) return true;
  if (prepared.error().code == Code::kCancelled) {
    static_cast<void>(lease.Release());
    return false;
  }
  // Lost or not, the next holder resumes from what is stored.
  if (lease.Expired() || prepared.error().code == Code::kLeaseLost) return false;
  const std::string body = lease.body();
  static_cast<void>(lease.GiveBack(body, terms.retry_delay, store::Lease::Attempts::kOneMore));
  return prepared.error().Within("preparing run '" + coordinator.run() + "'");
}

}  // namespace muster::work
