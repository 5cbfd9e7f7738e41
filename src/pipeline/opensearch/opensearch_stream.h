#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "net/opensearch.h"
#include "pipeline/opensearch/opensearch_bulk.h"

namespace muster::pipeline {

// Writes documents to a data stream, which only takes new ones, into the newest of its backing
// indices. An id is unique in one of them only, and a rollover may come at any time. So that a
// batch can be written twice all the same, what a bulk request says is not all:
//
// - An id that is there already is read: the same content counts as written, another one is
// refused.
//   Nothing is ever replaced, so it does not matter how late a write comes.
// - A document that was created in one index is looked up in the older ones. If it was there, this
//   one is deleted again, unless it has changed, and counts as there already.
//
// Used by one thread.
class OpenSearchStream {
 public:
  OpenSearchStream(net::OpenSearchClient& client, Env& env, std::string name)
      : client_(client), env_(env), name_(std::move(name)) {}

  // As Writer::Write, with a bulk that only creates.
  Result<std::vector<Refused>> Write(OpenSearchBulk& bulk, const Batch& batch,
                                     const Patience& patience);

 private:
  // A document as one of the indices has it.
  struct Copy {
    size_t age = 0;  // the place of its index in indices_
    int64_t seq_no = -1;
    int64_t primary_term = -1;
    std::string body;
  };
  using Copies = std::map<size_t, std::vector<Copy>>;  // by document, the oldest first

  Status SettleCreated(const OpenSearchBulk& bulk, const Batch& batch, const Patience& patience,
                       std::vector<Refused>& refused);
  Status SettleExisting(const OpenSearchBulk& bulk, const Batch& batch, const Patience& patience,
                        std::vector<Refused>& refused);
  // The oldest copy counts; later ones with the same content are deleted.
  Status Keep(const std::vector<Copy>& copies, const std::string& id, const Document& document,
              const Patience& patience);
  Status AskForIndices(const Patience& patience);
  size_t AgeOf(const std::string& index) const;  // indices_.size(): unknown
  // Looks documents up in the indices that are older than `ages` says.
  Result<Copies> LookUp(const OpenSearchBulk& bulk, const Batch& batch,
                        const std::map<size_t, size_t>& ages, const Patience& patience);
  // Why it is unknown whether an index has a document.
  Error NotSaid(const std::string& index, const std::string& problem) const;
  Status Delete(const std::string& index, const std::string& id, const Document& document,
                int64_t seq_no, int64_t primary_term, const Patience& patience);
  Result<net::OpenSearchAnswer> Send(net::OpenSearchCall call, const Patience& patience);

  net::OpenSearchClient& client_;
  Env& env_;
  const std::string name_;
  std::vector<std::string> indices_;  // backing indices, the oldest first
};

}  // namespace muster::pipeline
