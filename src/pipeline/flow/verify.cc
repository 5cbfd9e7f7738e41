#include "muster/migrate.h"

#include <array>
#include <map>
#include <memory>

#include "core/json_scan.h"
#include "pipeline/flow/document_hash.h"
#include "pipeline/flow/shards.h"
#include "pipeline/flow/transform_chain.h"
#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

constexpr size_t kBuckets = 4096;
constexpr size_t kMaxKept = 1'000'000;  // documents in buckets that differ

struct Bucket {
  int64_t documents = 0;
  DocumentHash sum;
  bool operator==(const Bucket&) const = default;
};

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

constexpr auto kAlreadyNamed = [](const Document&, const Partition&) {};

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

// Reads all documents of a side. Calls `visit` for each that passes the transforms, and for each
// that they add; `spoilt` for each that is invalid or fails in a transform, and so was not
// migrated.
template <class Visit, class Spoilt>
Result<std::vector<VerifyReport::Count>> ReadSide(const VerifySide& side, const TransformPlan* plan,
                                                  const Contents& contents, std::stop_token stop,
                                                  Visit visit, Spoilt spoilt) {
  TransformChain transforms;
  if (plan != nullptr) {
    MUSTER_ASSIGN(transforms, TransformChain::Of(*plan, side.collection));
  }
  MUSTER_ASSIGN(const auto partitions, side.source.Partitions(side.collection));
  std::vector<VerifyReport::Count> counts;
  int64_t read = 0;
  TransformChain::Made made;
  Arena arena;
  for (const Partition& partition : partitions) {
    VerifyReport::Count count{partition};
    MUSTER_ASSIGN(const auto reader, side.source.Read(partition, "", stop));
    while (true) {
      MUSTER_ASSIGN(const auto next, reader->Next());
      if (!next) break;
      ++read;
      arena.Clear();
      if (!next->defect.empty() || !transforms.Apply(*next, arena, made)) {
        ++count.documents;
        ++count.unreadable;
        spoilt(*next, partition);
        continue;
      }
      for (const Document& document : made.documents) {
        ++count.documents;
        visit(Seen{document.id, ContentOf(document, contents), partition, document.position});
      }
    }
    counts.push_back(std::move(count));
  }
  MUSTER_TRY(CheckCount(side.source, side.collection, partitions, [read] { return read; }));
  return counts;
}

// The documents of both sides in buckets, by id or by content.
class Comparison {
 public:
  Comparison(const VerifySide& source, const VerifySide& target, const VerifyOptions& options,
             std::stop_token stop)
      : source_(source), target_(target), options_(options), stop_(std::move(stop)) {
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
    MUSTER_TRY(Fill());
    if (options_.checksums && !with_ids_) {
      // Ids on one side only cannot be compared: compare contents instead.
      by_id_ = false;
      MUSTER_TRY(Fill());
    }
    if (options_.checksums && source_buckets_ != target_buckets_) MUSTER_TRY(NameDifferences());
    return std::move(report_);
  }

 private:
  using Buckets = std::array<Bucket, kBuckets>;

  size_t BucketOf(const Seen& seen) const {
    return (by_id_ ? HashBytes(seen.id).low : seen.content.low) % kBuckets;
  }

  Status Fill() {
    source_buckets_ = {};
    target_buckets_ = {};
    const auto into = [&](Buckets& buckets) {
      return [&](const Seen& seen) {
        if (seen.id.empty()) with_ids_ = false;
        Bucket& bucket = buckets[BucketOf(seen)];
        ++bucket.documents;
        bucket.sum += seen.content;
      };
    };
    report_.differences = 0;
    report_.named.clear();
    const auto spoilt = [&](const Document& document, const Partition& partition) {
      Name({VerifyDifference::Kind::kUnreadable, std::string(document.id), partition.shard,
            std::string(document.position)});
    };
    MUSTER_ASSIGN(report_.source, ReadSide(source_, options_.transforms, contents_, stop_,
                                           into(source_buckets_), spoilt));
    MUSTER_ASSIGN(report_.target,
                  ReadSide(target_, nullptr, contents_, stop_, into(target_buckets_), spoilt));
    return {};
  }

  Status NameDifferences() {
    std::multimap<std::string, Kept> left;  // source documents not yet found in the target
    const auto differs = [&](const Seen& seen) {
      const size_t bucket = BucketOf(seen);
      return source_buckets_[bucket] != target_buckets_[bucket];
    };
    const auto key_of = [&](const Seen& seen) {
      if (by_id_) return std::string(seen.id);
      return std::to_string(seen.content.low) + "/" + std::to_string(seen.content.high);
    };
    MUSTER_TRY(ReadSide(
        source_, options_.transforms, contents_, stop_,
        [&](const Seen& seen) {
          if (!differs(seen) || left.size() > kMaxKept) return;
          left.emplace(key_of(seen), Kept{std::string(seen.id), seen.content, seen.partition.shard,
                                          std::string(seen.position)});
        },
        kAlreadyNamed));
    if (left.size() > kMaxKept) {
      return Error{Code::kFull, source_.collection + ": more than a million documents may differ",
                   "compare smaller parts, or migrate again"};
    }
    MUSTER_TRY(ReadSide(
        target_, nullptr, contents_, stop_,
        [&](const Seen& seen) {
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
        },
        kAlreadyNamed));
    for (const auto& [key, kept] : left) {
      Name({VerifyDifference::Kind::kMissing, kept.id, kept.shard, kept.position});
    }
    return {};
  }

  void Name(VerifyDifference difference) {
    ++report_.differences;
    if (report_.named.size() < options_.max_named) report_.named.push_back(std::move(difference));
  }

  const VerifySide& source_;
  const VerifySide& target_;
  const VerifyOptions& options_;
  const std::stop_token stop_;
  Contents contents_;
  bool by_id_ = true;
  bool with_ids_ = true;
  Buckets source_buckets_{};
  Buckets target_buckets_{};
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
                                      const VerifyOptions& options, std::stop_token stop) {
  // A quarter of a megabyte: too large for the stack.
  const auto comparison = std::make_unique<Comparison>(source, target, options, std::move(stop));
  return comparison->Run();
}

}  // namespace muster::pipeline
