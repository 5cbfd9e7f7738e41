#pragma once

#include <string>
#include <vector>

#include "support/opensearch_server.h"

namespace muster::testing {

// What a cluster is filled with, as far as its version has it: types, nested documents, routing,
// updates and deletions, aliases with a filter, templates of both kinds, a data stream with a
// rollover, a lifecycle policy, a frozen index. All names begin with `prefix`.
class MatrixContent {
 public:
  MatrixContent(OpenSearchServer& server, std::string prefix);
  ~MatrixContent();
  MatrixContent(const MatrixContent&) = delete;
  MatrixContent& operator=(const MatrixContent&) = delete;

  bool has_streams() const { return has_streams_; }
  bool has_policies() const { return has_policies_; }
  bool has_frozen() const { return has_frozen_; }

  // Takes a snapshot of all of it into a new repository and returns its folder.
  std::string TakeSnapshot() const;

  // Removes everything whose name begins with `prefix`.
  static void Remove(const OpenSearchServer& server, const std::string& prefix);

 private:
  bool IsTyped() const;  // mappings have a type
  std::string Mappings() const;
  void AddBooks() const;
  void AddOldTemplate() const;
  bool AddStream() const;
  bool AddPolicy() const;
  bool AddFrozen() const;

  OpenSearchServer& server_;
  const std::string prefix_;
  bool has_streams_ = false;
  bool has_policies_ = false;
  bool has_frozen_ = false;
};

}  // namespace muster::testing
