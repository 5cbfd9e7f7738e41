#include "pipeline/opensearch/opensearch_source.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/number.h"
#include "net/opensearch.h"

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;
using std::chrono::milliseconds;

constexpr int64_t kDefaultPageBytes = 4 * 1024 * 1024;
constexpr int64_t kMaxWindow = 10'000;  // the most hits a server returns per response
constexpr int64_t kFirstWindow = 500;
constexpr int64_t kWidestWindow = int64_t{1} << 32;  // for ranges where few numbers have a document
constexpr int64_t kWorthSplitting = 2'000;
constexpr int kTries = 8;
constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{10'000};

// Zero-padded, so that positions sort numerically.
std::string PositionOf(int64_t seq_no) {
  char text[24];
  std::snprintf(text, sizeof text, "%019lld", static_cast<long long>(seq_no));
  return text;
}

// An index that never had a document has no mapping for the field and rejects a plain sort.
Json BySequenceNumber() {
  return Json::array({{{"_seq_no", {{"order", "asc"}, {"unmapped_type", "long"}}}}});
}

Result<int64_t> SeqNoOf(const std::string& position, int64_t if_empty) {
  if (position.empty()) return if_empty;
  int64_t number = 0;
  const char* const end = position.data() + position.size();
  const auto [stop, problem] = std::from_chars(position.data(), end, number);
  if (problem != std::errc() || stop != end || number < 0) {
    return Error{Code::kInvalid, "'" + position + "' is not a position of an OpenSearch index",
                 "is this still the source that the run was started with?"};
  }
  return number;
}

// Retries a read-only request until it is answered: waits for a cluster that is busy or restarting.
Result<net::OpenSearchAnswer> Ask(net::OpenSearchClient& client, Env& env,
                                  const net::OpenSearchCall& call, const std::stop_token& stop) {
  milliseconds pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    auto answer = client.Send(call, stop);
    Error error;
    milliseconds wait = pause;
    if (!answer) {
      error = answer.error();
    } else if (answer->status < 300) {
      return answer;
    } else {
      error = client.ErrorOf(call, *answer);
      wait = std::max(wait, answer->retry_after.value_or(wait));
    }
    if (error.code != Code::kUnavailable || attempt == kTries) return error;
    if (!env.Sleep(wait + env.Jitter(wait), stop)) {
      return Error{Code::kCancelled, "stopped while waiting for " + client.Place()};
    }
    pause = std::min(pause * 2, kLongestPause);
  }
}

Result<Json> AskForJson(net::OpenSearchClient& client, Env& env, const net::OpenSearchCall& call,
                        const std::stop_token& stop = {}) {
  MUSTER_ASSIGN(const net::OpenSearchAnswer answer, Ask(client, env, call, stop));
  auto json = ParseJson(answer.body, client.Place(), {.bytes = answer.body.size(), .depth = 500});
  if (!json) return Error{Code::kInternal, json.error().message};
  return std::move(*json);
}

Error Unexpected(const net::OpenSearchClient& client, const std::string& what) {
  return Error{Code::kInternal, client.Place() + " answered a search with " + what};
}

// The hits of a response as documents. Their bodies point into the response.
class Hits {
 public:
  explicit Hits(const net::OpenSearchClient& client) : client_(client) {}

  // Discards what was not returned yet.
  Status Read(std::string answer) {
    page_.Clear();
    at_ = 0;
    body_ = std::move(answer);
    const size_t size = body_.size();
    body_.resize(size + simdjson::SIMDJSON_PADDING);
    try {
      ondemand::document document = parser_.iterate(body_.data(), size, body_.size());
      for (ondemand::field field : document.get_object()) {
        const std::string_view name = field.unescaped_key();
        if (name == "_scroll_id") {
          scroll_ = std::string_view(field.value().get_string());
        } else if (name == "_shards") {
          // A partial shard failure must not pass for a complete result.
          if (field.value().get_object()["failed"].get_int64().value() > 0) return Incomplete();
        } else if (name == "hits") {
          for (ondemand::object hit : field.value().get_object()["hits"].get_array()) Add(hit);
        }
      }
    } catch (const simdjson::simdjson_error& problem) {
      return Unexpected(client_, std::string("what cannot be read: ") + problem.what());
    }
    return {};
  }

  size_t size() const { return page_.documents.size(); }
  bool Empty() const { return at_ == page_.documents.size(); }
  const Document& Take() { return page_.documents[at_++]; }
  const std::string& last_text() const { return last_text_; }  // of the last hit, sorted by text
  int64_t last() const { return last_; }                       // likewise, sorted by number
  const std::string& scroll() const { return scroll_; }
  std::string TakeScroll() { return std::exchange(scroll_, {}); }

 private:
  Error Incomplete() const {
    return Error{Code::kUnavailable, client_.Place() + " could not search the whole shard",
                 "see GET /_cluster/health: all primaries must be there"};
  }

  void Add(ondemand::object hit) {
    Document document;
    bool has_source = false;
    std::string_view position;
    for (ondemand::field field : hit) {
      const std::string_view name = field.unescaped_key();
      if (name == "_id") {
        document.id = page_.arena.Copy(field.value().get_string());
      } else if (name == "_routing") {
        document.routing = page_.arena.Copy(field.value().get_string());
      } else if (name == "_source") {
        document.body = field.value().get_object().value().raw_json();
        has_source = true;
      } else if (name == "sort") {
        position = Position(field.value().get_array());
      }
    }
    if (!has_source) {
      document.body = "{}";
      document.defect = "the index keeps no _source of it";
    }
    document.position = position;
    page_.documents.push_back(document);
  }

  std::string_view Position(ondemand::array sort) {
    for (ondemand::value value : sort) {
      if (value.type() == ondemand::json_type::string) {
        last_text_ = std::string_view(value.get_string());
        return page_.arena.Copy(last_text_);
      }
      last_ = value.get_int64();
    }
    return page_.arena.Copy(PositionOf(last_ + 1));
  }

  const net::OpenSearchClient& client_;
  ondemand::parser parser_;
  std::string body_;
  Batch page_;
  size_t at_ = 0;
  int64_t last_ = -1;
  std::string last_text_;
  std::string scroll_;
};

// Base of the shard readers, which return page after page.
class ShardReader : public Reader {
 public:
  ShardReader(net::OpenSearchClient& client, Env& env, const Partition& partition,
              std::stop_token stop)
      : client_(client),
        env_(env),
        index_("/" + net::OpenSearchPath(partition.collection)),
        shard_(std::to_string(partition.shard)),
        stop_(std::move(stop)),
        hits_(client) {}

  Result<std::optional<Document>> Next() override {
    while (hits_.Empty()) {
      if (ended_) return std::nullopt;
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
                .path = index_ + "/_search?preference=_shards:" + shard_ + parameters,
                .body = ToJsonText(body),
                .writes = false,
                .timeout = std::chrono::seconds(60),
                .max_response_bytes = kMaxAnswerBytes},
               stop_);
  }

  static constexpr size_t kMaxAnswerBytes = 128 * 1024 * 1024;

  net::OpenSearchClient& client_;
  Env& env_;
  const std::string index_;
  const std::string shard_;
  const std::stop_token stop_;
  Hits hits_;
  bool ended_ = false;
};

// Reads a range of sequence numbers, a window of them at a time.
class RangeReader final : public ShardReader {
 public:
  RangeReader(net::OpenSearchClient& client, Env& env, const Partition& partition, int64_t begin,
              int64_t end, int64_t page_bytes, std::stop_token stop)
      : ShardReader(client, env, partition, std::move(stop)),
        next_(begin),
        end_(end),
        page_bytes_(page_bytes) {}

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

// Reads everything from sequence number `begin` on, from one point in time: a document under
// continuous update keeps getting higher numbers, and a reader chasing them would never end.
class FollowingReader final : public ShardReader {
 public:
  FollowingReader(net::OpenSearchClient& client, Env& env, const Partition& partition,
                  int64_t begin, std::stop_token stop)
      : ShardReader(client, env, partition, std::move(stop)), next_(begin) {}

  ~FollowingReader() override { Close(); }

 private:
  Status ReadPage() override {
    auto answer = hits_.scroll().empty() ? Open() : GoOn();
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
    MUSTER_TRY(Ask(client_, env_, {.method = "POST", .path = index_ + "/_refresh", .writes = false},
                   stop_));
    return Search("&allow_partial_search_results=false&scroll=" + std::string(kKeep),
                  {{"size", size_},
                   {"query", {{"range", {{"_seq_no", {{"gte", next_}}}}}}},
                   {"sort", BySequenceNumber()},
                   {"stored_fields", {"_routing"}},
                   {"_source", true}});
  }

  Result<net::OpenSearchAnswer> GoOn() {
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

// Reads an index whose documents have no sequence numbers (before Elasticsearch 6), ordered by id.
class IdReader final : public ShardReader {
 public:
  IdReader(net::OpenSearchClient& client, Env& env, const Partition& partition, std::string field,
           std::string position, std::stop_token stop)
      : ShardReader(client, env, partition, std::move(stop)),
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

struct ShardState {
  int64_t checkpoint = -1;  // every change up to this one is done
  int64_t last = -1;        // the last change overall
  bool is_numbered = false;
  int64_t documents = 0;  // nested ones included
  int64_t bytes = 0;
};

class OpenSearchSource : public Source {
 public:
  OpenSearchSource(net::OpenSearchEndpoint endpoint, Env& env, std::string pattern,
                   int64_t page_bytes)
      : client_(std::move(endpoint), env),
        env_(env),
        pattern_(std::move(pattern)),
        page_bytes_(page_bytes) {}

  bool KeepsTypes() const override { return true; }
  bool KeepsRouting() const override { return true; }

  Result<std::vector<Collection>> Collections() override {
    // Every index with its metadata. Closed indices cannot be read.
    const std::string pattern = pattern_.empty() ? "*" : pattern_;
    MUSTER_ASSIGN(const Json indices, AskForJson(client_, env_,
                                                 {.path = "/" + pattern + "?expand_wildcards=open",
                                                  .max_response_bytes = 512 * 1024 * 1024}));
    if (indices.empty() && !pattern_.empty()) {
      return Error{Code::kNotFound, client_.Place() + " has no open index '" + pattern_ + "'",
                   "see what there is with GET /_cat/indices"};
    }
    std::vector<Collection> collections;
    for (const auto& [name, metadata] : indices.items()) {
      if (name.starts_with('.') && !pattern_.starts_with('.')) continue;
      if (IsOurStore(metadata)) continue;
      collections.push_back({name, ToJsonText(metadata)});
    }
    std::sort(collections.begin(), collections.end(),
              [](const Collection& a, const Collection& b) { return a.name < b.name; });
    return collections;
  }

  // Not worth failing for if the version lacks it or the user may not read it: the index itself has
  // its mappings.
  Result<std::string> GlobalMetadata() override {
    Json metadata = Json::object();
    AddTemplates(metadata, "index_templates", "/_index_template");
    AddTemplates(metadata, "component_templates", "/_component_template");
    const auto legacy = AskForJson(client_, env_, {.path = "/_template"});
    if (legacy) {
      for (const auto& [name, body] : legacy->items()) {
        if (!name.starts_with('.')) metadata["templates"][name] = body;
      }
    }
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(const auto shards, Shards(collection));
    // The latest writes are searchable only after a refresh.
    MUSTER_TRY(Refresh(collection));
    MUSTER_ASSIGN(const Counted counted, Count(collection));
    // A shard that came up since is not listed.
    if (counted.shards != shards.size()) {
      return ShardsUnavailable(collection, "only " + std::to_string(shards.size()) + " of " +
                                               std::to_string(counted.shards) +
                                               " shards were started");
    }
    MUSTER_ASSIGN(const bool by_id, HasUnnumbered(collection, shards));
    int64_t with_nested = 0;
    for (const auto& [number, shard] : shards) with_nested += shard.documents;
    std::vector<Partition> partitions;
    for (const auto& [number, shard] : shards) {
      Partition partition{.collection = collection, .shard = number};
      partition.documents = shard.documents;
      if (counted.documents != with_nested) {
        MUSTER_ASSIGN(const Counted of_shard, Count(collection, number));
        partition.documents = of_shard.documents;
      }
      partition.bytes = shard.bytes;
      if (by_id) {
        partition.part = kById;
        partitions.push_back(std::move(partition));
        continue;
      }
      partition.begin = PositionOf(0);
      partition.end = PositionOf(shard.checkpoint + 1);
      partitions.push_back(partition);
      partitions.push_back({.collection = collection,
                            .shard = number,
                            .begin = partition.end,
                            .documents = 0,
                            .bytes = 0,
                            .follows = true});
    }
    return partitions;
  }

  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    if (partitions.empty()) return std::nullopt;
    const std::string& collection = partitions.front().collection;
    MUSTER_TRY(Refresh(collection));
    MUSTER_ASSIGN(const Counted counted, Count(collection));
    MUSTER_ASSIGN(const auto shards, Shards(collection));
    int64_t by_id = 0;
    for (const Partition& partition : partitions) {
      if (partition.part == kById) by_id += partition.documents.value_or(0);
      if (!partition.follows) continue;
      const auto shard = shards.find(partition.shard);
      MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
      if (shard == shards.end() || shard->second.last + 1 != begin) return std::nullopt;
    }
    if (partitions.front().part == kById && by_id != counted.documents) return std::nullopt;
    return counted.documents;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    if (partition.part == kById) {
      MUSTER_ASSIGN(const std::string field, IdField());
      return std::make_unique<IdReader>(client_, env_, partition, field, position, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
    MUSTER_ASSIGN(const int64_t from, SeqNoOf(position, begin));
    if (partition.follows) {
      return std::make_unique<FollowingReader>(client_, env_, partition, from, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t end, SeqNoOf(partition.end, INT64_MAX / 2));
    return std::make_unique<RangeReader>(client_, env_, partition, from, end, page_bytes_,
                                         std::move(stop));
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    if (partition.part == kById) return std::nullopt;
    const auto begin = SeqNoOf(partition.begin, 0);
    const auto end = SeqNoOf(partition.end, 0);
    if (!begin || !end || *end <= *begin) return std::nullopt;
    const auto at = SeqNoOf(position, *begin);
    if (!at) return std::nullopt;
    return std::clamp(static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin), 0.0,
                      1.0);
  }

 private:
  static constexpr const char* kById = "by_id";

  // Our coordination index: copied, it would look like a run of the target's.
  static bool IsOurStore(const Json& metadata) {
    const Json& mappings = metadata.contains("mappings") ? metadata["mappings"] : Json();
    return mappings.is_object() && mappings.contains("_meta") && mappings["_meta"].is_object() &&
           mappings["_meta"].contains(net::kOpenSearchStoreMark);
  }

  Status Refresh(const std::string& collection) {
    MUSTER_TRY(AskForJson(client_, env_,
                          {.method = "POST",
                           .path = "/" + net::OpenSearchPath(collection) + "/_refresh",
                           .writes = false}));
    return {};
  }

  // The server's own count, independent of reading; excludes nested documents.
  struct Counted {
    int64_t documents = 0;
    size_t shards = 0;  // that responded
  };

  Result<Counted> Count(const std::string& collection, std::optional<int> shard = {}) {
    MUSTER_ASSIGN(
        const Json answer,
        AskForJson(client_, env_,
                   {.path = "/" + net::OpenSearchPath(collection) + "/_count" +
                            (shard ? "?preference=_shards:" + std::to_string(*shard) : "")}));
    const int64_t count = NumberIn(answer, "count", -1);
    if (count < 0) return Unexpected(client_, "no count");
    // A partial count must not pass for the total.
    const Json& shards = MemberIn(answer, "_shards");
    const int64_t total = NumberIn(shards, "total");
    const int64_t answered = NumberIn(shards, "successful");
    if (answered != total || total < 1) {
      return ShardsUnavailable(
          collection, std::to_string(answered) + " of " + std::to_string(total) + " shards answer");
    }
    return Counted{count, static_cast<size_t>(total)};
  }

  Error ShardsUnavailable(const std::string& collection, const std::string& what) const {
    return Error{Code::kUnavailable, client_.Place() + ": " + collection + ": " + what,
                 "bring the cluster out of status red first"};
  }

  Result<std::map<int, ShardState>> Shards(const std::string& collection) {
    MUSTER_ASSIGN(const Json stats, AskForJson(client_, env_,
                                               {.path = "/" + net::OpenSearchPath(collection) +
                                                        "/_stats/docs,store?level=shards"}));
    std::map<int, ShardState> shards;
    // Only started shards are listed.
    if (!MemberIn(MemberIn(stats, "indices"), collection).is_object()) {
      return ShardsUnavailable(collection, "no shard is started at the moment");
    }
    try {
      for (const auto& [number, copies] : stats.at("indices").at(collection).at("shards").items()) {
        const auto primary = std::find_if(copies.begin(), copies.end(), [](const Json& copy) {
          return copy.at("routing").at("primary").template get<bool>();
        });
        if (primary == copies.end()) {
          return ShardsUnavailable(collection, "shard " + number + " has no primary at the moment");
        }
        ShardState shard{.documents = primary->at("docs").at("count").get<int64_t>(),
                         .bytes = primary->at("store").at("size_in_bytes").get<int64_t>()};
        if (primary->contains("seq_no")) {
          const Json& numbers = primary->at("seq_no");
          shard.is_numbered = true;
          shard.checkpoint = numbers.at("global_checkpoint").get<int64_t>();
          shard.last = numbers.at("max_seq_no").get<int64_t>();
        }
        const auto shard_number = ParseNumber<int>(number);
        if (!shard_number) return Unexpected(client_, "a shard with the number '" + number + "'");
        shards.emplace(*shard_number, shard);
      }
    } catch (const std::exception& problem) {
      return Unexpected(client_, std::string("no shard statistics: ") + problem.what());
    }
    return shards;
  }

  // Whether any documents lack a sequence number. A range search misses those silently.
  Result<bool> HasUnnumbered(const std::string& collection,
                             const std::map<int, ShardState>& shards) {
    for (const auto& [number, shard] : shards) {
      if (!shard.is_numbered) return true;
    }
    const Json without{{"must_not", {{{"range", {{"_seq_no", {{"gte", 0}}}}}}}}};
    MUSTER_ASSIGN(const Json answer,
                  AskForJson(client_, env_,
                             {.method = "POST",
                              .path = "/" + net::OpenSearchPath(collection) + "/_count",
                              .body = ToJsonText({{"query", {{"bool", without}}}}),
                              .writes = false}));
    return NumberIn(answer, "count") > 0;
  }

  // The field to sort documents without sequence numbers by.
  Result<std::string> IdField() {
    MUSTER_ASSIGN(const Json about, AskForJson(client_, env_, {.path = "/"}));
    const std::string number = TextIn(MemberIn(about, "version"), "number");
    int major = 0;
    std::from_chars(number.data(), number.data() + number.size(), major);
    if (major >= 6) return std::string("_id");
    if (major == 5) return std::string("_uid");
    return Error{
        Code::kIncompatible,
        client_.Place() + " is of version " + number + ", which cannot be read from a place on",
        "take a snapshot and migrate that: snapshot+file:… or snapshot+s3:…"};
  }

  // [{"name", "index_template" or "component_template": …}] → {name: template}
  void AddTemplates(Json& metadata, const std::string& kind, const std::string& path) {
    const auto answer = AskForJson(client_, env_, {.path = path});
    if (!answer || !MemberIn(*answer, kind).is_array()) return;
    const std::string inner = kind.substr(0, kind.size() - 1);
    for (const Json& entry : (*answer)[kind]) {
      const std::string name = TextIn(entry, "name");
      if (name.empty() || name.starts_with('.') || !entry.contains(inner)) continue;
      const Json& body = entry[inner];
      // Built-in templates exist at the target as well, or don't belong there.
      const Json& managed = MemberIn(MemberIn(body, "_meta"), "managed");
      if (managed.is_boolean() && managed.get<bool>()) continue;
      metadata[kind][name] = body;
    }
  }

  net::OpenSearchClient client_;
  Env& env_;
  const std::string pattern_;
  const int64_t page_bytes_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env) {
  MUSTER_ASSIGN(net::OpenSearchEndpoint endpoint,
                net::OpenSearchEndpoint::FromUrl(url, {"page_bytes"}));
  int64_t page_bytes = kDefaultPageBytes;
  if (const auto text = url.Param("page_bytes")) {
    const char* const end = text->data() + text->size();
    const auto [stop, problem] = std::from_chars(text->data(), end, page_bytes);
    if (problem != std::errc() || stop != end || page_bytes < 1 ||
        page_bytes > (int64_t{1} << 30)) {
      return Error{Code::kInvalid, "page_bytes=" + *text + " is not a number of bytes"};
    }
  }
  std::string pattern;
  if (url.path.size() > 1) {
    // Commas and stars belong to the pattern; a slash would reach another API.
    for (const char c : url.path.substr(1)) {
      if (c == '*' || c == ',') {
        pattern += c;
      } else {
        pattern += PercentEncode(std::string_view(&c, 1));
      }
    }
  }
  return std::make_unique<OpenSearchSource>(std::move(endpoint), env, std::move(pattern),
                                            page_bytes);
}

}  // namespace muster::pipeline
