#include "muster/migrate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "core/json_scan.h"
#include "core/log.h"
#include "pipeline/flow/document_hash.h"
#include "pipeline/flow/shards.h"
#include "pipeline/flow/transform_chain.h"
#include "pipeline/flow/verify_state.h"
#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

constexpr int64_t kProgressEvery = 1'000;
constexpr size_t kMaxKept = 1'000'000;  // documents in buckets that differ

// A document of a bucket that differs.
struct Kept {
  std::string id;
  DocumentHash content;
  int shard = 0;
  std::string position;
};

struct Seen {
  std::string_view id;
  DocumentHash content;
  const Partition& partition;
  std::string_view position;
};

// What is compared of a document.
struct Contents {
  bool compared = false;
  HashTypes types = HashTypes::kIgnored;
  bool routing = false;
  // Columns of the target where JSON null and NULL are compared.
  std::vector<std::string> json_nulls;
};

// Takes the documents of a side.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // One that passes the transforms, or that they add.
  virtual void Visit(const Seen& seen) = 0;
  // One that is invalid or fails in a transform: it was not migrated.
  virtual void Spoilt(const Document& /*document*/, const Partition& /*partition*/) {}
  // How many documents were read of a partition that need not be read again.
  virtual std::optional<int64_t> Known(const Partition& /*partition*/) { return std::nullopt; }
  virtual void Read(int64_t /*documents*/) {}
  virtual Status Finished(const VerifyReport::Count& /*count*/, int64_t /*read*/) { return {}; }
};

// One that looks at documents that were counted before.
template <class Look>
class Again final : public Visitor {
 public:
  explicit Again(Look look) : look_(std::move(look)) {}
  void Visit(const Seen& seen) override { look_(seen); }

 private:
  const Look look_;
};

// The columns that can hold both JSON null and NULL. One that is NOT NULL holds JSON null for both,
// one that is not JSON holds NULL for both.
Result<std::vector<std::string>> ColumnsWithTwoNulls(const VerifySide& side) {
  std::vector<std::string> names;
  MUSTER_ASSIGN(const auto collection, side.source.Describe(side.collection));
  if (!collection) return names;
  MUSTER_ASSIGN(const TableShape shape, ShapeOf(*collection, false));
  for (const TableShape::Column& column : shape.columns) {
    if (column.nullable && (column.type == "json" || column.type == "jsonb")) {
      names.push_back(column.name);
    }
  }
  return names;
}

// Of a document where null is a JSON value: which of these columns are JSON null.
DocumentHash HashJsonNulls(std::string_view body, const std::vector<std::string>& columns) {
  DocumentHash hash;
  JsonMembers members(body.substr(SkipJsonSpace(body, 0)));
  while (const auto member = members.Next()) {
    if (member->value != "null") continue;
    for (const std::string& column : columns) {
      if (JsonKeyIs(member->key, column)) hash += HashBytes("JSON null in " + column);
    }
  }
  return hash;
}

DocumentHash ContentOf(const Document& document, const Contents& contents) {
  if (!contents.compared) return {};
  const auto hash = HashDocument(document.body, contents.types);
  DocumentHash content = hash ? *hash : HashBytes(document.body);
  // With a sum, swapping the routing of two documents would go unnoticed.
  if (contents.routing && !document.routing.empty()) {
    content = HashBytes(std::to_string(content.low) + "/" + std::to_string(content.high) + "/" +
                        std::string(document.routing));
  }
  if (hash && document.null_is_json) content += HashJsonNulls(document.body, contents.json_nulls);
  return content;
}

// Reads all documents of a side whose partitions are these.
Status ReadSide(const VerifySide& side, const std::vector<Partition>& partitions,
                const TransformPlan* plan, const Contents& contents, const std::stop_token& stop,
                Visitor& visitor) {
  TransformChain transforms;
  if (plan != nullptr) {
    MUSTER_ASSIGN(transforms, TransformChain::Of(*plan, side.collection));
  }
  int64_t read = 0;
  TransformChain::Made made;
  Arena arena;
  for (const Partition& partition : partitions) {
    if (const auto known = visitor.Known(partition)) {
      read += *known;
      continue;
    }
    VerifyReport::Count count{partition};
    const int64_t before = read;
    MUSTER_ASSIGN(const auto reader, side.source.Read(partition, "", stop));
    while (true) {
      MUSTER_ASSIGN(const auto next, reader->Next());
      if (!next) break;
      if (++read % kProgressEvery == 0) visitor.Read(kProgressEvery);
      arena.Clear();
      if (!next->defect.empty() || !transforms.Apply(*next, arena, made)) {
        ++count.documents;
        ++count.unreadable;
        visitor.Spoilt(*next, partition);
        continue;
      }
      for (const Document& document : made.documents) {
        ++count.documents;
        visitor.Visit(
            Seen{document.id, ContentOf(document, contents), partition, document.position});
      }
    }
    if (partition.follows && read > before) {
      Log(Level::kWarning, "documents changed while they were compared: they may count twice",
          {{"collection", side.collection}, {"documents", read - before}});
    }
    MUSTER_TRY(visitor.Finished(count, read - before));
  }
  return CheckCount(side.source, side.collection, partitions, [read] { return read; });
}

// The documents of both sides in buckets, by id or by content.
class Comparison {
 public:
  Comparison(const VerifySide& source, const VerifySide& target, const VerifyOptions& options,
             VerifyObserver& observer, std::stop_token stop)
      : source_(source),
        target_(target),
        options_(options),
        observer_(observer),
        stop_(std::move(stop)) {
    const Source& one = source.source;
    const Source& other = target.source;
    contents_.compared = options.checksums;
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
    if (options_.checksums && state_.source.buckets != state_.target.buckets) {
      MUSTER_TRY(NameDifferences());
    }
    return std::move(report_);
  }

 private:
  // Adds up one side, partition after partition.
  class Filler final : public Visitor {
   public:
    Filler(Comparison& comparison, VerifySideState& side)
        : comparison_(comparison), side_(side), next_(side.buckets) {
      for (const VerifySideState::Done& one : side.done) earlier_.push_back(one);
    }

    void Visit(const Seen& seen) override {
      if (seen.id.empty()) comparison_.state_.with_ids = false;
      VerifyBucket& bucket = next_[comparison_.BucketOf(seen)];
      ++bucket.documents;
      bucket.sum += comparison_.SummandOf(seen);
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
      side_.done.push_back({count, read});
      side_.buckets = next_;
      side_.unreadable.insert(side_.unreadable.end(), spoilt_.begin(), spoilt_.end());
      spoilt_.clear();
      return comparison_.Save();
    }

   private:
    Comparison& comparison_;
    VerifySideState& side_;
    std::vector<VerifySideState::Done> earlier_;
    VerifyBuckets next_;  // with those of the partition that is read
    std::vector<VerifyDifference> spoilt_;
  };

  // What identifies a partition; its size is an estimate.
  static bool IsSame(const Partition& a, const Partition& b) {
    return a.collection == b.collection && a.shard == b.shard && a.part == b.part &&
           a.begin == b.begin && a.end == b.end && a.follows == b.follows && a.mark == b.mark;
  }

  size_t BucketOf(const Seen& seen) const {
    return (state_.by_id ? HashBytes(seen.id).low : seen.content.low) %
           std::tuple_size_v<VerifyBuckets>;
  }

  // With the contents alone, documents of a bucket could exchange their ids.
  DocumentHash SummandOf(const Seen& seen) const {
    if (!contents_.compared || !state_.by_id) return seen.content;
    const DocumentHash id = HashBytes(seen.id);
    const std::array<uint64_t, 4> both{seen.content.low, seen.content.high, id.low, id.high};
    std::array<char, sizeof both> bytes;
    std::memcpy(bytes.data(), both.data(), sizeof both);
    return HashBytes({bytes.data(), bytes.size()});
  }

  Status Fill() {
    read_ = 0;
    MUSTER_TRY(FillSide(source_, options_.transforms, state_.source));
    return FillSide(target_, nullptr, state_.target);
  }

  Status FillSide(const VerifySide& side, const TransformPlan* plan, VerifySideState& state) {
    MUSTER_ASSIGN(const auto partitions, side.source.Partitions(side.collection));
    const auto is_there = [&](const VerifySideState::Done& one) {
      return std::any_of(partitions.begin(), partitions.end(), [&](const Partition& partition) {
        return IsSame(one.count.partition, partition);
      });
    };
    // Sums cannot be taken apart again.
    if (!std::all_of(state.done.begin(), state.done.end(), is_there)) state = {};
    Filler filler(*this, state);
    return ReadSide(side, partitions, plan, contents_, stop_, filler);
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

  Status NameDifferences() {
    std::multimap<std::string, Kept> left;  // source documents not yet found in the target
    const auto differs = [&](const Seen& seen) {
      const size_t bucket = BucketOf(seen);
      return state_.source.buckets[bucket] != state_.target.buckets[bucket];
    };
    const auto key_of = [&](const Seen& seen) {
      if (state_.by_id) return std::string(seen.id);
      return std::to_string(seen.content.low) + "/" + std::to_string(seen.content.high);
    };
    Again keep([&](const Seen& seen) {
      if (!differs(seen) || left.size() > kMaxKept) return;
      left.emplace(key_of(seen), Kept{std::string(seen.id), seen.content, seen.partition.shard,
                                      std::string(seen.position)});
    });
    MUSTER_TRY(ReadAgain(source_, options_.transforms, keep));
    if (left.size() > kMaxKept) {
      return Error{Code::kFull, source_.collection + ": more than a million documents may differ",
                   "compare smaller parts, or migrate again"};
    }
    Again compare([&](const Seen& seen) {
      if (!differs(seen)) return;
      const auto found = left.find(key_of(seen));
      if (found == left.end()) {
        Name({VerifyDifference::Kind::kExtra, std::string(seen.id), seen.partition.shard,
              std::string(seen.position)});
        return;
      }
      const Kept& kept = found->second;
      if (kept.content != seen.content) {
        Name({VerifyDifference::Kind::kChanged, kept.id, kept.shard, kept.position});
      }
      left.erase(found);
    });
    MUSTER_TRY(ReadAgain(target_, nullptr, compare));
    for (const auto& [key, kept] : left) {
      Name({VerifyDifference::Kind::kMissing, kept.id, kept.shard, kept.position});
    }
    return {};
  }

  Status ReadAgain(const VerifySide& side, const TransformPlan* plan, Visitor& visitor) {
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
  Contents contents_;
  VerifyState state_;
  int64_t read_ = 0;
  VerifyReport report_;
};

int64_t Sum(const std::vector<VerifyReport::Count>& counts) {
  int64_t documents = 0;
  for (const VerifyReport::Count& count : counts) documents += count.documents;
  return documents;
}

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
  return differences == 0 && SourceDocuments() == TargetDocuments();
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
