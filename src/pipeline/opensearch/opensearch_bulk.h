#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "net/opensearch.h"
#include "pipeline/flow/pace.h"

namespace muster::pipeline {

struct OpenSearchBulkOptions {
  bool gzip = false;
  // The ingest pipeline that documents go through. By default none, not even the index's own: they
  // went through it in the source. Empty: the index's own.
  std::string ingest = "_none";
};

struct BulkItem;

// Writes documents to one index with _bulk until each is accepted or permanently refused. Used by
// one thread; client and pace may be shared.
class OpenSearchBulk {
 public:
  OpenSearchBulk(net::OpenSearchClient& client, Env& env, Pace& pace, std::string index,
                 const OpenSearchBulkOptions& options, const Fence& fence)
      : client_(client),
        env_(env),
        pace_(pace),
        index_(std::move(index)),
        options_(options),
        origin_(fence.origin),
        since_ms_(fence.since_ms),
        rank_(fence.rank),
        yields_(fence.yields) {}

  // kUnavailable, kReadOnly, kUnknownOutcome: patience ran out with some not accepted; writing the
  // batch again is safe. kLeaseLost: a later holder has written one of them.
  Result<std::vector<Refused>> Write(const Batch& batch, const Patience& patience);

  // From now on documents are only created, and none replaces another: the target is a data stream.
  void OnlyCreate() { creates_ = true; }
  // Whether the last Write failed since the target is one. Nothing was written.
  bool MetDataStream() const { return met_data_stream_; }

  // What became of the documents of the last Write, by their index in the batch: those that were
  // created, and those whose id was there already.
  struct Created {
    size_t document = 0;
    std::string index;
    int64_t seq_no = -1;
    int64_t primary_term = -1;
  };
  const std::vector<Created>& created() const { return created_; }
  const std::vector<size_t>& existing() const { return existing_; }

  // Derived, if the document has none.
  std::string IdOf(const Document& document) const;

 private:
  // The outcome of one request.
  struct Round {
    std::vector<size_t> again = {};  // to be retried, in order
    Error why = {};                  // of one of them
    bool overloaded = false;
    std::chrono::milliseconds retry_after{0};
  };

  // `sent`: the documents of the batch to send, in order. Errors are not about a single document.
  Result<Round> Send(const Batch& batch, const std::vector<size_t>& sent, const Patience& patience,
                     std::vector<Refused>& refused);
  Result<Round> SendHalves(const Batch& batch, const std::vector<size_t>& sent,
                           const Patience& patience, std::vector<Refused>& refused);
  Status Judge(const Batch& batch, const std::vector<size_t>& sent, const std::string& answer,
               Round& round, std::vector<Refused>& refused);
  Status JudgeOne(const Document& about, size_t index, const BulkItem& said, Round& round,
                  std::vector<Refused>& refused);
  // Whether documents go through a pipeline, which may drop them.
  bool HasPipeline() const { return options_.ingest != "_none"; }
  int64_t VersionOf(const Document& document) const;
  void AppendAction(const Document& document, std::string& body) const;

  net::OpenSearchClient& client_;
  Env& env_;
  Pace& pace_;
  const std::string index_;
  const OpenSearchBulkOptions options_;
  const std::string origin_;
  const int64_t since_ms_;
  const int64_t rank_;
  const bool yields_;
  bool creates_ = false;
  bool met_data_stream_ = false;
  std::vector<Created> created_;
  std::vector<size_t> existing_;
  std::map<size_t, int> races_;  // of the current batch's documents
};

}  // namespace muster::pipeline
