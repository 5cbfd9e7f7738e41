#include "pipeline/opensearch_source.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/json.h"
#include "base/opensearch.h"

namespace muster {
namespace {

namespace ondemand = simdjson::ondemand;
using std::chrono::milliseconds;

constexpr int64_t kDefaultPageBytes = 4 * 1024 * 1024;
constexpr int64_t kMaxWindow = 10'000;  // the most hits that a server gives in one answer
constexpr int64_t kFirstWindow = 500;
constexpr int64_t kWidestWindow = int64_t{1} << 32;  // where hardly a number has a document
constexpr int64_t kWorthSplitting = 2'000;
constexpr int kTries = 8;
constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{10'000};

// Zero-padded, so that positions sort as the numbers do.
std::string PositionOf(int64_t seq_no) {
  char text[24];
  std::snprintf(text, sizeof text, "%019lld", static_cast<long long>(seq_no));
  return text;
}

Result<int64_t> SeqNoOf(const std::string& position, int64_t if_empty) {
  if (position.empty()) return if_empty;
  int64_t number = 0;
  const char* const end = position.data() + position.size();
  const auto [stop, problem] = std::from_chars(position.data(), end, number);
  if (problem != std::errc() || stop != end || number < 0) {
    return Error{Code::kInvalid, "'" + position + "' is not a position of an OpenSearch index",
                 "is the source still the one that the work was begun with?"};
  }
  return number;
}

// Sends what changes nothing until it is answered: a cluster that is busy or restarts is waited
// for.
Result<OpenSearchAnswer> Ask(OpenSearchClient& client, Env& env, const OpenSearchCall& call,
                             const std::stop_token& stop) {
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

Result<Json> AskForJson(OpenSearchClient& client, Env& env, const OpenSearchCall& call,
                        const std::stop_token& stop = {}) {
  MUSTER_ASSIGN(const OpenSearchAnswer answer, Ask(client, env, call, stop));
  auto json = ParseJson(answer.body, client.Place(), {.bytes = answer.body.size(), .depth = 500});
  if (!json) return Error{Code::kInternal, json.error().message};
  return std::move(*json);
}

Error Unexpected(const OpenSearchClient& client, const std::string& what) {
  return Error{Code::kInternal, client.Place() + " answered a search with " + what};
}

// Reads a range of sequence numbers of one shard, a window of them at a time.
class ShardReader : public Reader {
 public:
  ShardReader(OpenSearchClient& client, Env& env, const Partition& partition, int64_t begin,
              int64_t end, int64_t page_bytes, std::stop_token stop)
      : client_(client),
        env_(env),
        index_(partition.collection),
        shard_(partition.shard),
        next_(begin),
        end_(end),
        page_bytes_(page_bytes),
        stop_(std::move(stop)) {}

  Result<std::optional<Document>> Next() override {
    while (at_ == page_.documents.size()) {
      if (next_ >= end_) return std::nullopt;
      MUSTER_TRY(ReadWindow());
    }
    return page_.documents[at_++];
  }

  Result<std::optional<std::string>> Split() override {
    if (end_ - next_ < kWorthSplitting) return std::nullopt;
    end_ = next_ + (end_ - next_) / 2;
    return PositionOf(end_);
  }

 private:
  // Reads the documents of [next_, next_ + window_), of which there are at most as many as numbers.
  Status ReadWindow() {
    page_.Clear();
    at_ = 0;
    const int64_t end = std::min(next_ + window_, end_);
    const OpenSearchCall call{
        .method = "POST",
        .path = "/" + OpenSearchPath(index_) +
                "/_search?allow_partial_search_results=false&preference=_shards:" +
                std::to_string(shard_),
        .body = ToJsonText({{"size", std::min(window_, kMaxWindow)},
                            {"query", {{"range", {{"_seq_no", {{"gte", next_}, {"lt", end}}}}}}},
                            {"sort", {{{"_seq_no", "asc"}}}},
                            {"track_total_hits", false},
                            {"stored_fields", {"_routing"}},
                            {"_source", true}}),
        .writes = false,
        .timeout = std::chrono::seconds(60),
        .max_response_bytes = kMaxAnswerBytes};
    auto answer = Ask(client_, env_, call, stop_);
    if (!answer) {
      // Perhaps the documents are larger than an answer may be: ask for fewer.
      if (answer.error().code == Code::kInvalid && window_ > 1) {
        window_ = std::max<int64_t>(window_ / 8, 1);
        return {};
      }
      return answer.error();
    }
    const size_t bytes = answer->body.size();
    MUSTER_TRY(Parse(std::move(answer->body)));
    const auto hits = static_cast<int64_t>(page_.documents.size());
    if (hits == kMaxWindow && window_ > kMaxWindow) {
      next_ = last_ + 1;  // more than one answer holds: go on behind the last
    } else {
      next_ = end;
    }
    Adapt(hits, static_cast<int64_t>(bytes));
    return {};
  }

  // Chooses the next window so that an answer has about page_bytes_: many numbers where documents
  // are small or most are gone, few where they are large.
  void Adapt(int64_t hits, int64_t bytes) {
    if (hits == 0) {
      window_ = std::min(window_ * 4, kWidestWindow);
      return;
    }
    const int64_t wanted =
        std::max<int64_t>(window_ * page_bytes_ / std::max<int64_t>(bytes, 1), 1);
    window_ =
        std::clamp(wanted, std::max<int64_t>(window_ / 4, 1), std::min(window_ * 4, kWidestWindow));
    // Where most numbers have a document, more than an answer may hold need not be asked for.
    if (hits * 2 > window_) window_ = std::min(window_, kMaxWindow);
  }

  Status Parse(std::string body) {
    body_ = std::move(body);
    const size_t size = body_.size();
    body_.resize(size + simdjson::SIMDJSON_PADDING);
    try {
      ondemand::document answer = parser_.iterate(body_.data(), size, body_.size());
      ondemand::object outer = answer["hits"].get_object();
      ondemand::array hits = outer["hits"].get_array();
      for (ondemand::object hit : hits) AddHit(hit);
    } catch (const simdjson::simdjson_error& problem) {
      return Unexpected(client_, std::string("what cannot be read: ") + problem.what());
    }
    return {};
  }

  void AddHit(ondemand::object hit) {
    Document document;
    bool has_source = false;
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
        for (int64_t seq_no : field.value().get_array()) last_ = seq_no;
      }
    }
    if (!has_source) {
      document.body = "{}";
      document.defect = "the index keeps no _source of it";
    }
    document.position = page_.arena.Copy(PositionOf(last_ + 1));
    page_.documents.push_back(document);
  }

  static constexpr size_t kMaxAnswerBytes = 128 * 1024 * 1024;

  OpenSearchClient& client_;
  Env& env_;
  const std::string index_;
  const int shard_;
  int64_t next_;  // the first number that was not asked for yet
  int64_t end_;
  int64_t last_ = -1;  // the number of the last hit
  int64_t window_ = kFirstWindow;
  const int64_t page_bytes_;
  const std::stop_token stop_;
  ondemand::parser parser_;
  std::string body_;
  Batch page_;  // bodies point into body_
  size_t at_ = 0;
};

class OpenSearchSource : public Source {
 public:
  OpenSearchSource(OpenSearchEndpoint endpoint, Env& env, std::string pattern, int64_t page_bytes)
      : client_(std::move(endpoint), env),
        env_(env),
        pattern_(std::move(pattern)),
        page_bytes_(page_bytes) {}

  Result<std::vector<Collection>> Collections() override {
    // Every index with all that is known of it. Closed ones cannot be read.
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
      collections.push_back({name, ToJsonText(metadata)});
    }
    std::sort(collections.begin(), collections.end(),
              [](const Collection& a, const Collection& b) { return a.name < b.name; });
    return collections;
  }

  // What cannot be read, because the version has no such thing or the user no such right, is not
  // worth failing for: the index itself knows its mappings.
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
    const std::string index = "/" + OpenSearchPath(collection);
    // What was indexed last can be found only after a refresh.
    MUSTER_TRY(AskForJson(client_, env_,
                          {.method = "POST", .path = index + "/_refresh", .writes = false}));
    MUSTER_ASSIGN(const Json stats,
                  AskForJson(client_, env_, {.path = index + "/_stats/docs,store?level=shards"}));
    std::vector<Partition> partitions;
    try {
      for (const auto& [number, copies] : stats.at("indices").at(collection).at("shards").items()) {
        const auto primary = std::find_if(copies.begin(), copies.end(), [](const Json& copy) {
          return copy.at("routing").at("primary").template get<bool>();
        });
        if (primary == copies.end()) {
          return Error{Code::kUnavailable,
                       client_.Place() + ": shard " + number + " of " + collection +
                           " has no primary at the moment",
                       "bring the cluster out of status red first"};
        }
        Partition partition{.collection = collection, .shard = std::stoi(number)};
        partition.begin = PositionOf(0);
        partition.end = PositionOf(primary->at("seq_no").at("max_seq_no").get<int64_t>() + 1);
        partition.documents = primary->at("docs").at("count").get<int64_t>();
        partition.bytes = primary->at("store").at("size_in_bytes").get<int64_t>();
        partitions.push_back(std::move(partition));
      }
    } catch (const std::exception& problem) {
      return Unexpected(client_, std::string("no shard statistics: ") + problem.what());
    }
    std::sort(partitions.begin(), partitions.end(),
              [](const Partition& a, const Partition& b) { return a.shard < b.shard; });
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
    MUSTER_ASSIGN(const int64_t from, SeqNoOf(position, begin));
    MUSTER_ASSIGN(const int64_t end, SeqNoOf(partition.end, INT64_MAX / 2));
    return std::make_unique<ShardReader>(client_, env_, partition, from, end, page_bytes_,
                                         std::move(stop));
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    const auto begin = SeqNoOf(partition.begin, 0);
    const auto end = SeqNoOf(partition.end, 0);
    if (!begin || !end || *end <= *begin) return std::nullopt;
    const auto at = SeqNoOf(position, *begin);
    if (!at) return std::nullopt;
    return std::clamp(static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin), 0.0,
                      1.0);
  }

 private:
  // [{"name", "index_template" or "component_template": …}] → {name: template}
  void AddTemplates(Json& metadata, const std::string& kind, const std::string& path) {
    const auto answer = AskForJson(client_, env_, {.path = path});
    if (!answer || !answer->contains(kind)) return;
    const std::string inner = kind.substr(0, kind.size() - 1);
    for (const Json& entry : (*answer)[kind]) {
      const std::string name = entry.value("name", "");
      if (name.empty() || name.starts_with('.') || !entry.contains(inner)) continue;
      const Json& body = entry[inner];
      // Those that come with the server are there at the target as well, or don't belong there.
      if (body.contains("_meta") && body["_meta"].is_object() &&
          body["_meta"].value("managed", false)) {
        continue;
      }
      metadata[kind][name] = body;
    }
  }

  OpenSearchClient client_;
  Env& env_;
  const std::string pattern_;
  const int64_t page_bytes_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env) {
  MUSTER_ASSIGN(OpenSearchEndpoint endpoint, OpenSearchEndpoint::FromUrl(url, {"page_bytes"}));
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
    // Commas and stars are the pattern's, a slash would reach into another API.
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

}  // namespace muster
