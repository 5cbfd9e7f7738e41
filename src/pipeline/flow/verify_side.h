#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/migrate.h"
#include "muster/result.h"
#include "pipeline/flow/document_hash.h"

namespace muster::pipeline {

struct SeenDocument {
  std::string_view id;
  std::string_view routing;
  DocumentHash content;
  const Partition& partition;
  std::string_view position;
  // The target it goes to, or the collection it is in; empty: the pair of the comparison, since
  // documents choose no targets.
  std::string_view place = {};
};

// What is compared of a document.
struct ComparedContents {
  bool compared = false;
  HashTypes types = HashTypes::kIgnored;
  bool routing = false;
  bool places = false;  // documents may choose targets
  // Columns of the target where JSON null and NULL are compared.
  std::vector<std::string> json_nulls;
};

// Takes the documents of a side.
class SideVisitor {
 public:
  virtual ~SideVisitor() = default;
  // One that passes the transforms, or that they add.
  virtual void Visit(const SeenDocument& seen) = 0;
  // One that is invalid or fails in a transform: it was not migrated.
  virtual void Spoilt(const Document& /*document*/, const Partition& /*partition*/) {}
  // How many documents were read of a partition that need not be read again.
  virtual std::optional<int64_t> Known(const Partition& /*partition*/) { return std::nullopt; }
  virtual void Read(int64_t /*documents*/) {}
  virtual Status Finished(const VerifyReport::Count& /*count*/, int64_t /*read*/) { return {}; }
};

// One that looks at documents that were counted before.
template <class Look>
class SecondLook final : public SideVisitor {
 public:
  explicit SecondLook(Look look) : look_(std::move(look)) {}
  void Visit(const SeenDocument& seen) override { look_(seen); }

 private:
  const Look look_;
};

// The columns that can hold both JSON null and NULL. One that is NOT NULL holds JSON null for both,
// one that is not JSON holds NULL for both.
Result<std::vector<std::string>> ColumnsWithTwoNulls(const VerifySide& side);

// Reads all documents of a side whose partitions are these. `plan`: of the source; null: the
// target.
Status ReadSide(const VerifySide& side, const std::vector<Partition>& partitions,
                const TransformPlan* plan, const ComparedContents& contents,
                const std::stop_token& stop, SideVisitor& visitor);

}  // namespace muster::pipeline
