#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// Positions of documents that are read by sequence number: the number, zero-padded, so that
// positions sort numerically.
std::string PositionOf(int64_t seq_no);
Result<int64_t> SeqNoOf(const std::string& position, int64_t if_empty);

// The hits of a response as documents. Their bodies point into the response.
class Hits {
 public:
  explicit Hits(const net::OpenSearchClient& client);
  ~Hits();

  // Discards what was not returned yet.
  Status Read(std::string answer);

  // Frees what was returned: before the next response arrives, there is no need for two.
  void Drop();

  size_t size() const { return page_.documents.size(); }
  bool Empty() const { return at_ == page_.documents.size(); }
  const Document& Take() { return page_.documents[at_++]; }
  const std::string& last_text() const { return last_text_; }  // of the last hit, sorted by text
  int64_t last() const { return last_; }                       // likewise, sorted by number
  const std::string& scroll() const { return scroll_; }
  std::string TakeScroll() { return std::exchange(scroll_, {}); }

 private:
  struct Parser;

  const net::OpenSearchClient& client_;
  const std::unique_ptr<Parser> parser_;
  std::string body_;
  Batch page_;
  size_t at_ = 0;
  int64_t last_ = -1;
  std::string last_text_;
  std::string scroll_;
};

}  // namespace muster::pipeline
