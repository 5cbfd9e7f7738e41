#include "muster/migrate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "pipeline/flow/document_hash.h"
#include "pipeline/flow/verify_places.h"
#include "pipeline/flow/verify_side.h"
#include "pipeline/flow/verify_state.h"

namespace muster::pipeline {
namespace {

constexpr size_t kMaxKept = 1'000'000;  // documents in buckets that differ
constexpr size_t kDeletedAtOnce = 1'000;

int64_t Sum(const std::vector<VerifyReport::Count>& counts) {
  int64_t documents = 0;
  for (const VerifyReport::Count& count : counts) documents += count.documents;
  return documents;
}

// A document of a bucket that differs.
struct Kept {
  std::string id;
  DocumentHash content;
  int shard = 0;
  std::string position;
};

// One of the target that the source lacks.
struct Extra {
  std::string routing;
  int shard = 0;
  std::string position;
};

// The documents of both sides in buckets, by id or by content.
class Comparison {
 public:
  Comparison(const VerifySide& source, const VerifySide& target, const VerifyOptions& options,
             VerifyObserver& observer, std::stop_token stop)
      : source_(source),
        target_(target),
        options_(options),
        observer_(observer),
        stop_(std::move(stop)),
        places_(target, options.transforms != nullptr && options.transforms->ChoosesTargets()) {
    const Source& one = source.source;
    const Source& other = target.source;
    contents_.compared = options.checksums;
    contents_.places = options.transforms != nullptr && options.transforms->ChoosesTargets();
    if (one.KeepsTypes() && other.KeepsTypes()) contents_.types = HashTypes::kCompared;
    contents_.routing = one.KeepsRouting() && other.KeepsRouting();
  }

  Result<VerifyReport> Run() {
    if (options_.checksums && source_.source.KeepsJsonNulls() && target_.source.KeepsJsonNulls()) {
      MUSTER_ASSIGN(contents_.json_nulls, ColumnsWithTwoNulls(target_));
    }
    if (!options_.state.empty()) MUSTER_TRY(VerifyState::FromText(options_.state, state_));
    MUSTER_TRY(Fill());
    if (options_.checksums && !state_.with_ids && state_.by_id) {
      // Ids on one side only cannot be compared: compare contents instead.
      state_.by_id = false;
      state_.source = {};
      state_.target = {};
      MUSTER_TRY(Fill());
    }
    Report(state_.source, report_.source);
    Report(state_.target, report_.target);
    ReportPlaces();
    if (options_.checksums && state_.source.buckets != state_.target.buckets) {
      if (options_.delete_extra) MUSTER_TRY(CheckDeletes());
      MUSTER_TRY(NameDifferences());
      if (!extra_.empty()) MUSTER_TRY(DeleteExtra());
    }
    return std::move(report_);
  }

 private:
  // Adds up one side, partition after partition.
  class Filler final : public SideVisitor {
   public:
    Filler(Comparison& comparison, VerifySideState& side)
        : comparison_(comparison), side_(side), next_(side.buckets), places_(side.places) {
      for (const VerifySideState::Done& one : side.done) earlier_.push_back(one);
    }

    void Visit(const SeenDocument& seen) override {
      if (seen.id.empty()) comparison_.state_.with_ids = false;
      VerifyBucket& bucket = next_[comparison_.BucketOf(seen)];
      ++bucket.documents;
      bucket.sum += comparison_.SummandOf(seen);
      if (comparison_.contents_.places) ++places_[std::string(comparison_.places_.PlaceOf(seen))];
    }
    void Spoilt(const Document& document, const Partition& partition) override {
      if (spoilt_.size() >= comparison_.options_.max_named) return;
      spoilt_.push_back({VerifyDifference::Kind::kUnreadable, std::string(document.id),
                         partition.shard, std::string(document.position)});
    }
    std::optional<int64_t> Known(const Partition& partition) override {
      for (const VerifySideState::Done& one : earlier_) {
        if (!IsSame(one.count.partition, partition)) continue;
        comparison_.Progress(one.read);
        return one.read;
      }
      return std::nullopt;
    }
    void Read(int64_t documents) override { comparison_.Progress(documents); }
    Status Finished(const VerifyReport::Count& count, int64_t read) override {
      MUSTER_TRY(comparison_.places_.status());
      side_.done.push_back({count, read});
      side_.buckets = next_;
      side_.places = places_;
      side_.unreadable.insert(side_.unreadable.end(), spoilt_.begin(), spoilt_.end());
      spoilt_.clear();
      return comparison_.Save();
    }

   private:
    Comparison& comparison_;
    VerifySideState& side_;
    std::vector<VerifySideState::Done> earlier_;
    VerifyBuckets next_;  // with those of the partition that is read
    std::map<std::string, int64_t> places_;
    std::vector<VerifyDifference> spoilt_;
  };

  // What identifies a partition; its size is an estimate.
  static bool IsSame(const Partition& a, const Partition& b) {
    return a.collection == b.collection && a.shard == b.shard && a.part == b.part &&
           a.begin == b.begin && a.end == b.end && a.follows == b.follows && a.mark == b.mark;
  }

  size_t BucketOf(const SeenDocument& seen) {
    return (state_.by_id ? HashBytes(places_.KeyOf(seen)).low : places_.ContentOf(seen).low) %
           std::tuple_size_v<VerifyBuckets>;
  }

  // With the contents alone, documents of a bucket could exchange their ids.
  DocumentHash SummandOf(const SeenDocument& seen) {
    if (!contents_.compared) return seen.content;
    if (!state_.by_id) return places_.ContentOf(seen);
    const DocumentHash id = HashBytes(places_.KeyOf(seen));
    const std::array<uint64_t, 4> both{seen.content.low, seen.content.high, id.low, id.high};
    std::array<char, sizeof both> bytes;
    std::memcpy(bytes.data(), both.data(), sizeof both);
    return HashBytes({bytes.data(), bytes.size()});
  }

  Status Fill() {
    read_ = 0;
    MUSTER_TRY(FillSide(source_, {source_.collection}, options_.transforms, state_.source));
    MUSTER_ASSIGN(const std::vector<std::string> targets,
                  places_.Collections(state_.source.places));
    return FillSide(target_, targets, nullptr, state_.target);
  }

  Status FillSide(const VerifySide& side, const std::vector<std::string>& collections,
                  const TransformPlan* plan, VerifySideState& state) {
    std::vector<std::vector<Partition>> partitions;
    for (const std::string& one : collections) {
      MUSTER_ASSIGN(partitions.emplace_back(), side.source.Partitions(one));
    }
    const auto is_there = [&](const VerifySideState::Done& one) {
      return std::any_of(partitions.begin(), partitions.end(), [&](const auto& ones) {
        return std::any_of(ones.begin(), ones.end(), [&](const Partition& partition) {
          return IsSame(one.count.partition, partition);
        });
      });
    };
    // Sums cannot be taken apart again.
    if (!std::all_of(state.done.begin(), state.done.end(), is_there)) state = {};
    Filler filler(*this, state);
    for (size_t i = 0; i < collections.size(); ++i) {
      MUSTER_TRY(
          ReadSide({side.source, collections[i]}, partitions[i], plan, contents_, stop_, filler));
    }
    return {};
  }

  void Progress(int64_t documents) {
    read_ += documents;
    observer_.Advanced(read_);
  }

  Status Save() {
    return observer_.Save([this] { return state_.ToText(); });
  }

  void Report(const VerifySideState& side, std::vector<VerifyReport::Count>& counts) {
    int64_t unreadable = 0;
    for (const VerifySideState::Done& one : side.done) {
      counts.push_back(one.count);
      unreadable += one.count.unreadable;
    }
    for (const VerifyDifference& one : side.unreadable) Name(one);
    report_.differences += unreadable - static_cast<int64_t>(side.unreadable.size());
  }

  // By index: equal sums may hide that documents went to another.
  void ReportPlaces() {
    std::map<std::string, VerifyReport::Chosen> all;
    for (const auto& [place, documents] : state_.source.places) all[place].source = documents;
    for (const auto& [place, documents] : state_.target.places) all[place].sink = documents;
    if (all.empty() || (all.size() == 1 && all.begin()->first.empty())) return;
    for (auto& [place, chosen] : all) {
      chosen.target = place.empty() ? target_.collection : place;
      report_.chosen.push_back(std::move(chosen));
    }
  }

  Status NameDifferences() {
    std::multimap<std::string, Kept> left;  // source documents not yet found in the target
    const auto differs = [&](const SeenDocument& seen) {
      const size_t bucket = BucketOf(seen);
      return state_.source.buckets[bucket] != state_.target.buckets[bucket];
    };
    const auto key_of = [&](const SeenDocument& seen) {
      if (state_.by_id) return std::string(places_.KeyOf(seen));
      const DocumentHash content = places_.ContentOf(seen);
      return std::to_string(content.low) + "/" + std::to_string(content.high);
    };
    SecondLook keep([&](const SeenDocument& seen) {
      if (!differs(seen) || left.size() > kMaxKept) return;
      left.emplace(key_of(seen), Kept{NameOf(seen), seen.content, seen.partition.shard,
                                      std::string(seen.position)});
    });
    MUSTER_TRY(ReadAgain(source_, options_.transforms, keep));
    if (left.size() > kMaxKept) {
      return Error{Code::kFull, source_.collection + ": more than a million documents may differ",
                   "compare smaller parts, or migrate again"};
    }
    SecondLook compare([&](const SeenDocument& seen) {
      if (!differs(seen)) return;
      const auto found = left.find(key_of(seen));
      if (found == left.end()) return FoundExtra(seen);
      const Kept& kept = found->second;
      if (kept.content != seen.content) {
        Name({VerifyDifference::Kind::kChanged, kept.id, kept.shard, kept.position});
      }
      left.erase(found);
    });
    MUSTER_ASSIGN(const std::vector<std::string> targets,
                  places_.Collections(state_.source.places));
    for (const std::string& one : targets) {
      MUSTER_TRY(ReadAgain({target_.source, one}, nullptr, compare));
    }
    for (const auto& [key, kept] : left) {
      Name({VerifyDifference::Kind::kMissing, kept.id, kept.shard, kept.position});
    }
    return {};
  }

  // "orders-2024/17" in an index that was chosen.
  std::string NameOf(const SeenDocument& seen) {
    const std::string_view place = places_.PlaceOf(seen);
    return (place.empty() ? "" : std::string(place) + "/") + std::string(seen.id);
  }

  void FoundExtra(const SeenDocument& seen) {
    Extra extra{std::string(seen.routing), seen.partition.shard, std::string(seen.position)};
    if (options_.delete_extra) {
      if (extra_.size() <= kMaxKept) extra_.emplace(seen.id, std::move(extra));
    } else {
      Name({VerifyDifference::Kind::kExtra, NameOf(seen), extra.shard, extra.position});
    }
  }

  Status CheckDeletes() const {
    if (!state_.by_id) {
      return Error{Code::kIncompatible,
                   source_.collection + ": extra documents cannot be deleted without ids"};
    }
    if (!report_.chosen.empty()) {
      return Error{Code::kIncompatible,
                   source_.collection +
                       ": its documents choose their indices, and extra ones of these "
                       "cannot be deleted",
                   "see which they are without --delete-extra"};
    }
    for (const VerifyReport::Count& count : report_.source) {
      if (count.unreadable == 0) continue;
      return Error{Code::kIncompatible,
                   source_.collection +
                       ": has documents that cannot be read or transformed; in the target they "
                       "would seem to be extra, so nothing was deleted",
                   "see which with 'muster verify --checksums'"};
    }
    return {};
  }

  // A running migration may have copied a document that is newer than the first look at the source.
  Status DeleteExtra() {
    SecondLook confirm([&](const SeenDocument& seen) {
      const auto [first, last] = extra_.equal_range(std::string(seen.id));
      for (auto one = first; one != last; one = extra_.erase(one)) {
        Name({VerifyDifference::Kind::kChanged, one->first, one->second.shard,
              one->second.position});
      }
    });
    MUSTER_TRY(ReadAgain(source_, options_.transforms, confirm));
    if (const auto documents = static_cast<size_t>(Sum(report_.target));
        extra_.size() > kMaxKept || extra_.size() * 2 > documents) {
      return Error{Code::kConflict,
                   target_.collection + ": " + std::to_string(extra_.size()) + " of " +
                       std::to_string(documents) +
                       " documents are extra, too many to delete: nothing was deleted",
                   "is this its only source? Then empty the target and migrate again"};
    }
    Batch batch;
    for (auto one = extra_.begin(); one != extra_.end();) {
      Document document;
      document.id = one->first;
      document.routing = one->second.routing;
      document.body = "{}";
      document.deleted = true;
      batch.Add(document);
      if (++one != extra_.end() && batch.documents.size() < kDeletedAtOnce) continue;
      MUSTER_TRY(options_.delete_extra(batch));
      report_.deleted += static_cast<int64_t>(batch.documents.size());
      batch.Clear();
    }
    return {};
  }

  Status ReadAgain(const VerifySide& side, const TransformPlan* plan, SideVisitor& visitor) {
    MUSTER_ASSIGN(const auto partitions, side.source.Partitions(side.collection));
    return ReadSide(side, partitions, plan, contents_, stop_, visitor);
  }

  void Name(VerifyDifference difference) {
    ++report_.differences;
    if (report_.named.size() < options_.max_named) report_.named.push_back(std::move(difference));
  }

  const VerifySide& source_;
  const VerifySide& target_;
  const VerifyOptions& options_;
  VerifyObserver& observer_;
  const std::stop_token stop_;
  ComparedContents contents_;
  VerifyPlaces places_;
  VerifyState state_;
  int64_t read_ = 0;
  std::multimap<std::string, Extra> extra_;  // by id, to be deleted
  VerifyReport report_;
};

}  // namespace

int64_t VerifyReport::SourceDocuments() const { return Sum(source); }

int64_t VerifyReport::TargetDocuments() const { return Sum(target); }

int64_t VerifyReport::Unreadable() const {
  int64_t documents = 0;
  for (const Count& count : source) documents += count.unreadable;
  for (const Count& count : target) documents += count.unreadable;
  return documents;
}

bool VerifyReport::Equal() const {
  return differences == 0 && SourceDocuments() == TargetDocuments() - deleted &&
         std::all_of(chosen.begin(), chosen.end(),
                     [](const Chosen& one) { return one.source == one.sink; });
}

Result<VerifyReport> VerifyCollection(const VerifySide& source, const VerifySide& target,
                                      const VerifyOptions& options, VerifyObserver& observer,
                                      std::stop_token stop) {
  // A quarter of a megabyte: too large for the stack.
  const auto comparison =
      std::make_unique<Comparison>(source, target, options, observer, std::move(stop));
  return comparison->Run();
}

}  // namespace muster::pipeline
