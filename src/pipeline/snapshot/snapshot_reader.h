#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lucene/lucene.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/snapshot/source_builder.h"
#include "pipeline/snapshot/type_field.h"

namespace muster::pipeline {

// One shard of one snapshot, read as one leg of a partition.
struct SnapshotLeg {
  std::shared_ptr<const lucene::ShardDirectory> directory;
  // The same shard in another snapshot, whose documents are skipped; may be null.
  std::shared_ptr<const lucene::ShardDirectory> without = nullptr;
  bool deletes = false;  // its documents are deletes
  int64_t version = 0;   // of its documents
  uint64_t end = 0;      // number of positions
  // How its documents get back what their _source lacks; null: they do not.
  std::shared_ptr<const RebuildPlan> rebuild = nullptr;
};

// A position as text: zero-padded, so that positions sort numerically.
std::string SnapshotPosition(uint64_t number);
// The same, written into `text`.
void PutSnapshotPosition(uint64_t number, std::string& text);
Result<uint64_t> SnapshotNumber(const std::string& position, uint64_t if_empty);

// Which documents to read.
struct SnapshotChoice {
  std::string type;              // only those of this type; empty: all
  std::string type_field;        // not empty: the field that takes the type
  bool recovery_source = false;  // use the copy kept for recovery, where there is one
  bool pruned_source = false;    // a _source without some fields will do
  bool rebuild_source = false;   // rebuild what _source lacks from the fields' values
  bool is_pruned = false;        // by the mapping, _source lacks fields
};

// Reads the documents of one leg after another, with consecutive positions.
class SnapshotReader final : public Reader {
 public:
  static Result<std::unique_ptr<Reader>> Open(std::vector<SnapshotLeg> legs,
                                              const Partition& partition,
                                              const std::string& position, SnapshotChoice choice);

  Result<std::optional<Document>> Next() override;
  Result<std::optional<std::string>> Split() override;

 private:
  SnapshotReader(std::vector<SnapshotLeg> legs, SnapshotChoice choice)
      : legs_(std::move(legs)), choice_(std::move(choice)), type_field_(choice_.type_field) {}
  Status OpenLegAt(uint64_t position);
  bool IsChosen() const;
  Document DocumentOf(const SnapshotLeg& leg);
  // Takes the copy kept for recovery, or rebuilds the body; false: neither, and it is incomplete.
  bool Complete(Document& document);

  const std::vector<SnapshotLeg> legs_;
  const SnapshotChoice choice_;
  TypeField type_field_;
  size_t leg_ = 0;
  uint64_t base_ = 0;  // the first position of the leg
  std::optional<lucene::ShardReader> shard_;
  lucene::Document found_;
  std::optional<SourceBuilder> builder_;  // of the leg
  std::string defect_;
  std::string position_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;
};

}  // namespace muster::pipeline
