#include "pipeline/opensearch/opensearch_readers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/json.h"
#include "pipeline/opensearch/opensearch_hits.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_shards.h"

namespace muster::pipeline {
namespace {

constexpr int64_t kMaxWindow = 10'000;  // the most hits a server returns per response
constexpr int64_t kFirstWindow = 500;
constexpr int64_t kWidestWindow = int64_t{1} << 32;  // for ranges where few numbers have a document
constexpr int64_t kWorthSplitting = 2'000;

// An index that never had a document has no mapping for the field and rejects a plain sort.
Json BySequenceNumber() {
  return Json::array({{{"_seq_no", {{"order", "asc"}, {"unmapped_type", "long"}}}}});
}

// Base of the shard readers, which return page after page.
class ShardReader : public Reader {
 public:
  ShardReader(net::OpenSearchClient& client, Env& env, const ShardPlace& place,
              std::stop_token stop)
      : client_(client),
        env_(env),
        place_(place),
        index_("/" + net::OpenSearchPath(place.index)),
        search_(index_ + "/_search?preference=_shards:" + std::to_string(place.shard) +
                FrozenParameter({.uuid = place.uuid, .is_frozen = place.is_frozen}, '&')),
        stop_(std::move(stop)),
        hits_(client) {}

  Result<std::optional<Document>> Next() override {
    while (hits_.Empty()) {
      if (ended_) {
        // An index that was re-created meanwhile has answered some of the searches.
        MUSTER_TRY(OpenSearchShards(client_, env_).CheckUuid(place_.index, place_.uuid, stop_));
        return std::nullopt;
      }
      hits_.Drop();
      MUSTER_TRY(ReadPage());
    }
    return hits_.Take();
  }

 protected:
  // Reads the next page, which may be empty, or sets ended_.
  virtual Status ReadPage() = 0;

  Result<net::OpenSearchAnswer> Search(const std::string& parameters, const Json& body) {
    return Ask(client_, env_,
               {.method = "POST",
                .path = search_ + parameters,
                .body = ToJsonText(body),
                .writes = false,
                .timeout = std::chrono::seconds(60),
                .max_response_bytes = kMaxAnswerBytes},
               stop_);
  }

  static constexpr size_t kMaxAnswerBytes = 128 * 1024 * 1024;

  net::OpenSearchClient& client_;
  Env& env_;
  const ShardPlace place_;
  const std::string index_;
  const std::string search_;
  const std::stop_token stop_;
  Hits hits_;
  bool ended_ = false;
};

// Reads a range of sequence numbers, a window of them at a time.
class RangeReader final : public ShardReader {
 public:
  RangeReader(net::OpenSearchClient& client, Env& env, const ShardPlace& place,
              const SeqNoRange& range, std::stop_token stop)
      : ShardReader(client, env, place, std::move(stop)),
        next_(range.begin),
        end_(range.end),
        page_bytes_(range.page_bytes) {}

  Result<std::optional<std::string>> Split() override {
    if (end_ - next_ < kWorthSplitting) return std::nullopt;
    end_ = next_ + (end_ - next_) / 2;
    return PositionOf(end_);
  }

 private:
  // Reads the documents of [next_, next_ + window_), at most one per number.
  Status ReadPage() override {
    if (next_ >= end_) {
      ended_ = true;
      return {};
    }
    const int64_t end = std::min(next_ + window_, end_);
    auto answer = Search("&allow_partial_search_results=false",
                         {{"size", std::min(window_, kMaxWindow)},
                          {"query", {{"range", {{"_seq_no", {{"gte", next_}, {"lt", end}}}}}}},
                          {"sort", BySequenceNumber()},
                          {"track_total_hits", false},
                          {"stored_fields", {"_routing"}},
                          {"_source", true}});
    if (!answer) {
      // The documents may be larger than a response may be: ask for fewer.
      if (answer.error().code == Code::kInvalid && window_ > 1) {
        window_ = std::max<int64_t>(window_ / 8, 1);
        return {};
      }
      return answer.error();
    }
    const size_t bytes = answer->body.size();
    MUSTER_TRY(hits_.Read(std::move(answer->body)));
    const auto hits = static_cast<int64_t>(hits_.size());
    if (hits == kMaxWindow && window_ > kMaxWindow) {
      next_ = hits_.last() + 1;  // more than one response holds: continue after the last
    } else {
      next_ = end;
    }
    Adapt(hits, static_cast<int64_t>(bytes));
    return {};
  }

  // Sizes the next window so that a response has about page_bytes_: wide where documents are small
  // or mostly deleted, narrow where they are large.
  void Adapt(int64_t hits, int64_t bytes) {
    if (hits == 0) {
      window_ = std::min(window_ * 4, kWidestWindow);
      return;
    }
    const int64_t wanted =
        std::max<int64_t>(window_ * page_bytes_ / std::max<int64_t>(bytes, 1), 1);
    window_ =
        std::clamp(wanted, std::max<int64_t>(window_ / 4, 1), std::min(window_ * 4, kWidestWindow));
    // Where most numbers have a document, don't ask for more than a response can hold.
    if (hits * 2 > window_) window_ = std::min(window_, kMaxWindow);
  }

  int64_t next_;  // the next number to request
  int64_t end_;
  int64_t window_ = kFirstWindow;
  const int64_t page_bytes_;
};

class FollowingReader final : public ShardReader {
 public:
  FollowingReader(net::OpenSearchClient& client, Env& env, const ShardPlace& place, int64_t begin,
                  std::stop_token stop)
      : ShardReader(client, env, place, std::move(stop)), next_(begin) {}

  ~FollowingReader() override { Close(); }

 private:
  Status ReadPage() override {
    auto answer = hits_.scroll().empty() ? Open() : Continue();
    if (!answer) {
      const Code code = answer.error().code;
      Close();
      // The scroll has expired: continue with a new one.
      if (code == Code::kNotFound && is_open_) {
        is_open_ = false;
        return {};
      }
      if (code == Code::kInvalid && size_ > 1) {
        size_ = std::max<int64_t>(size_ / 8, 1);
        return {};
      }
      return answer.error();
    }
    is_open_ = true;
    MUSTER_TRY(hits_.Read(std::move(answer->body)));
    ended_ = hits_.Empty();
    if (!ended_) next_ = hits_.last() + 1;
    return {};
  }

  Result<net::OpenSearchAnswer> Open() {
    // The latest writes are searchable only after a refresh.
    MUSTER_TRY(OpenSearchShards(client_, env_).Refresh(place_.index, stop_));
    return Search("&allow_partial_search_results=false&scroll=" + std::string(kKeep),
                  {{"size", size_},
                   {"query", {{"range", {{"_seq_no", {{"gte", next_}}}}}}},
                   {"sort", BySequenceNumber()},
                   {"stored_fields", {"_routing"}},
                   {"_source", true}});
  }

  Result<net::OpenSearchAnswer> Continue() {
    return Ask(client_, env_,
               {.method = "POST",
                .path = "/_search/scroll",
                .body = ToJsonText({{"scroll", kKeep}, {"scroll_id", hits_.scroll()}}),
                .writes = false,
                .timeout = std::chrono::seconds(60),
                .max_response_bytes = kMaxAnswerBytes},
               stop_);
  }

  // Best effort: the server expires it anyway.
  void Close() {
    const std::string scroll = hits_.TakeScroll();
    if (scroll.empty()) return;
    static_cast<void>(client_.Send({.method = "DELETE",
                                    .path = "/_search/scroll",
                                    .body = ToJsonText({{"scroll_id", scroll}}),
                                    .timeout = std::chrono::seconds(5)}));
  }

  static constexpr const char* kKeep = "10m";

  int64_t next_;
  int64_t size_ = kFirstWindow;
  bool is_open_ = false;
};

class IdReader final : public ShardReader {
 public:
  IdReader(net::OpenSearchClient& client, Env& env, const ShardPlace& place, std::string field,
           std::string position, std::stop_token stop)
      : ShardReader(client, env, place, std::move(stop)),
        field_(std::move(field)),
        next_(std::move(position)) {}

 private:
  Status ReadPage() override {
    Json body{{"size", size_},
              {"query", {{"match_all", Json::object()}}},
              {"sort", {{{field_, "asc"}}}},
              {"stored_fields", {"_routing"}},
              {"_source", true}};
    if (!next_.empty()) body["search_after"] = {next_};
    auto answer = Search("", body);
    if (!answer) {
      if (answer.error().code == Code::kInvalid && size_ > 1) {
        size_ = std::max<int64_t>(size_ / 8, 1);
        return {};
      }
      return answer.error();
    }
    MUSTER_TRY(hits_.Read(std::move(answer->body)));
    ended_ = hits_.Empty();
    if (!ended_) next_ = hits_.last_text();
    return {};
  }

  const std::string field_;
  std::string next_;
  int64_t size_ = kFirstWindow;
};

}  // namespace

std::unique_ptr<Reader> NewRangeReader(net::OpenSearchClient& client, Env& env,
                                       const ShardPlace& place, const SeqNoRange& range,
                                       std::stop_token stop) {
  return std::make_unique<RangeReader>(client, env, place, range, std::move(stop));
}

std::unique_ptr<Reader> NewFollowingReader(net::OpenSearchClient& client, Env& env,
                                           const ShardPlace& place, int64_t begin,
                                           std::stop_token stop) {
  return std::make_unique<FollowingReader>(client, env, place, begin, std::move(stop));
}

std::unique_ptr<Reader> NewIdReader(net::OpenSearchClient& client, Env& env,
                                    const ShardPlace& place, std::string field,
                                    std::string position, std::stop_token stop) {
  return std::make_unique<IdReader>(client, env, place, std::move(field), std::move(position),
                                    std::move(stop));
}

}  // namespace muster::pipeline
