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
  std::map<size_t, int> races_;  // of the current batch's documents
};

}  // namespace muster::pipeline
