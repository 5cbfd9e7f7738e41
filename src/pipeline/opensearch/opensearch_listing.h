#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "net/opensearch.h"
#include "pipeline/opensearch/data_streams.h"
#include "pipeline/opensearch/index_pattern.h"

namespace muster::pipeline {

// What a cluster has, as far as a source's pattern selects it. All arguments must outlive it.
class OpenSearchListing {
 public:
  // `pruned`: as for RefusalOf.
  OpenSearchListing(net::OpenSearchClient& client, Env& env, const IndexPattern& pattern,
                    bool pruned)
      : client_(client), env_(env), pattern_(pattern), pruned_(pruned) {}

  struct Listed {
    std::string name;
    Json metadata = Json::object();  // of a data stream: that of its newest backing index
    std::optional<Error> refusal = {};
    bool is_stream = false;
    std::vector<std::string> backing = {};  // the indices of a data stream
  };

  // Indices by name, then data streams by name: a stream is created after the indices, to which its
  // template might apply.
  Result<std::vector<Listed>> List();

  // What else there is, and why it is not listed.
  Result<std::vector<LeftOut>> Unlisted();

 private:
  // By name: open indices with their metadata, and closed ones; null: the user may not see these.
  struct Indices {
    Json open;
    Json closed;
  };

  Result<Indices> AskForIndices();
  std::vector<Listed> ListIndices(const Indices& indices) const;
  Result<std::vector<Listed>> ListStreams(const Indices& indices);
  Listed ListedStream(const std::string& name, const std::vector<std::string>& backing,
                      const Indices& indices) const;

  net::OpenSearchClient& client_;
  Env& env_;
  const IndexPattern& pattern_;
  const bool pruned_;
};

}  // namespace muster::pipeline
