#include "pipeline/opensearch/opensearch_sink.h"

#include <algorithm>

#include "core/json.h"
#include "core/json_fields.h"
#include "net/opensearch.h"
#include "pipeline/flow/pace.h"
#include "pipeline/opensearch/opensearch_bulk.h"
#include "pipeline/opensearch/opensearch_metadata.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_stream.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {
namespace {

// The server's rules, checked early: it would reject the name only on creating the index, after
// others were created.
Status CheckIndexName(const std::string& name) {
  constexpr size_t kLongest = 255;
  std::string why;
  const bool has_upper =
      std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (has_upper) why = "has letters in upper case";
  if (name.find_first_of("\\/*?\"<>| ,#:") != std::string::npos) {
    why = "has one of the characters \\ / * ? \" < > | , # : or a space";
  }
  if (name.find_first_of("-_+") == 0) why = "begins with -, _ or +";
  if (name.empty() || name == "." || name == "..") why = "is empty or only dots";
  if (name.size() > kLongest) why = "is longer than 255 bytes";
  if (why.empty()) return {};
  return Error{Code::kInvalid, "'" + name + "' is not a valid index name: it " + why,
               "give the collection another name (rename_index), or name the index in the sink's "
               "URL"};
}

// The only index behind `alias`, by the answer to GET ALIAS/_alias/ALIAS. Empty: there are several,
// or one may be added (is_write_index, as a rollover does), or `alias` is none.
std::string OnlyIndexBehind(const Json& answer, const std::string& alias) {
  if (!answer.is_object() || answer.size() != 1) return "";
  const auto& [index, about] = *answer.items().begin();
  if (!about.is_object() || !about.contains("aliases")) return "";
  const Json& aliases = about["aliases"];
  if (!aliases.is_object() || !aliases.contains(alias)) return "";
  const Json& options = aliases[alias];
  return options.is_object() && options.contains("is_write_index") ? "" : index;
}

// Ids are unique in each index of a data stream, not among them: in one index, one document would
// replace another.
Error IsNoStream(const std::string& name) {
  return Error{Code::kInvalid,
               "a data stream of the source would be written to '" + name + "', which is an index",
               "name another target (rename_index), or migrate the stream's indices into this one: "
               ".ds-NAME-* at the end of the source's URL, and --merge"};
}

class BulkWriter : public Writer {
 public:
  BulkWriter(OpenSearchBulk bulk, OpenSearchStream stream)
      : bulk_(std::move(bulk)), stream_(std::move(stream)) {}

  const std::optional<Progress>& Known() const override { return known_; }

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress&,
                                     const Patience& patience) override {
    if (!is_stream_) {
      auto written = bulk_.Write(batch, patience);
      if (written || !bulk_.MetDataStream()) return written;
      // It says so of each document.
      is_stream_ = true;
      bulk_.OnlyCreate();
    }
    return stream_.Write(bulk_, batch, patience);
  }

 private:
  const std::optional<Progress> known_;  // never set: the cluster stores no progress
  OpenSearchBulk bulk_;
  OpenSearchStream stream_;
  bool is_stream_ = false;
};

class OpenSearchSink : public Sink {
 public:
  OpenSearchSink(net::OpenSearchEndpoint endpoint, Env& env, std::string index,
                 OpenSearchBulkOptions options)
      : client_(std::move(endpoint), env),
        env_(env),
        pace_(env),
        index_(std::move(index)),
        options_(std::move(options)) {}

  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    const std::string name = IndexOf(collection.name);
    MUSTER_TRY(CheckIndexName(name));
    MUSTER_ASSIGN(const Json metadata, ParseJson(collection.metadata, "metadata of " + name));
    MUSTER_ASSIGN(const auto found, OpenSearchTarget::Find(client_, name));
    if (found && found->refusal) return *found->refusal;
    if (found && !found->is_stream && metadata::IsStream(metadata)) return IsNoStream(name);
    if (found) {
      const bool warns = !evaluate && !found->index.empty() && !found->is_stream;
      if (warns) MUSTER_TRY(metadata_.WarnAbout(found->index, metadata));
      return std::vector<TargetChange>{};
    }
    return metadata::IsStream(metadata) ? metadata_.CreateStream(name, metadata, evaluate)
                                        : metadata_.CreateIndex(name, metadata, evaluate);
  }

  bool CanDelete() const override { return true; }
  bool ReplacesById(const Collection&) const override { return true; }
  std::string Place(const std::string& collection) const override { return IndexOf(collection); }

  // The uuid of the index, also of the only one behind an alias. What is behind a data stream or an
  // alias with a write index may change.
  Result<std::string> Identity(const std::string& collection) override {
    const std::string name = IndexOf(collection);
    const std::string path = "/" + net::OpenSearchPath(name);
    auto answer = client_.SendForJson({.path = path + "/_settings/index.uuid"});
    if (!answer && answer.error().code == Code::kNotFound) {
      // A cluster that has just started knows no index yet, and looks a name up before it refuses
      // to answer; with a pattern it refuses.
      auto started = client_.SendForJson({.path = path + "*/_settings/index.uuid"});
      if (!started && IsTransient(started.error().code)) return started.error();
      if (started && started->contains(name)) answer = std::move(started);
    }
    if (!answer) {
      const Code code = answer.error().code;
      // Some users may write but not read settings, and some services have none.
      if (code == Code::kPermission || code == Code::kInvalid) return std::string();
      return answer.error();
    }
    if (answer->contains(name)) return IndexUuidIn(*answer, name);
    const auto behind =
        client_.SendForJson({.path = path + "/_alias/" + net::OpenSearchPath(name)});
    if (!behind) {
      if (IsTransient(behind.error().code)) return behind.error();
      return std::string();
    }
    return IndexUuidIn(*answer, OnlyIndexBehind(*behind, name));
  }

  Result<std::string> TableId(const std::string& collection) override {
    MUSTER_ASSIGN(const auto found, OpenSearchTarget::Find(client_, IndexOf(collection)));
    return found ? tables_.IdOf(found->uuid) : std::string();
  }

  Result<std::optional<int64_t>> CountDocuments(const std::string& collection) override {
    const std::string path = "/" + net::OpenSearchPath(IndexOf(collection));
    // The latest writes are counted only after a refresh.
    const auto refreshed =
        Ask(client_, env_, {.method = "POST", .path = path + "/_refresh", .writes = false}, {});
    if (!refreshed) return NotCounted(refreshed.error());
    const auto counted = AskForJson(client_, env_, {.path = path + "/_count"});
    if (!counted) return NotCounted(counted.error());
    const Json& count = MemberIn(*counted, "count");
    if (!count.is_number_integer()) return std::nullopt;
    return count.get<int64_t>();
  }

  Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata_text,
                                                  bool evaluate) override {
    MUSTER_ASSIGN(const Json metadata, ParseJson(metadata_text, "metadata of the source"));
    return metadata_.CreateTemplates(metadata, evaluate);
  }

  Status CheckChosen(const std::string& target) const override {
    if (!index_.empty()) return Sink::CheckChosen(target);
    const Status checked = CheckIndexName(target);
    if (checked) return {};
    return Error{Code::kInvalid, checked.error().message, "correct the script that chooses it"};
  }

  Result<std::unique_ptr<Writer>> Open(const std::string& collection, const Fence& fence) override {
    const std::string name = IndexOf(collection);
    return std::make_unique<BulkWriter>(OpenSearchBulk(client_, env_, pace_, name, options_, fence),
                                        OpenSearchStream(client_, env_, name));
  }

 private:
  std::string IndexOf(const std::string& collection) const {
    return index_.empty() ? collection : index_;
  }

  // Some users may write but not read or refresh.
  static Result<std::optional<int64_t>> NotCounted(const Error& error) {
    if (error.code == Code::kPermission || error.code == Code::kInvalid) return std::nullopt;
    return error;
  }

  net::OpenSearchClient client_;
  Env& env_;
  OpenSearchTables tables_{client_, env_};
  OpenSearchMetadata metadata_{client_, env_};
  Pace pace_;
  const std::string index_;  // empty: each collection has its own
  const OpenSearchBulkOptions options_;
};

bool IsThisMachine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

Result<std::unique_ptr<Sink>> OpenOpenSearchSink(const Url& url, Env& env) {
  MUSTER_ASSIGN(net::OpenSearchEndpoint endpoint,
                net::OpenSearchEndpoint::FromUrl(url, {"gzip", "pipeline"}));
  OpenSearchBulkOptions options{.gzip = !IsThisMachine(url.host)};
  if (const auto text = url.Param("gzip")) {
    if (*text != "true" && *text != "false") {
      return Error{Code::kInvalid, "gzip=" + *text + " is neither true nor false"};
    }
    options.gzip = *text == "true";
  }
  if (const auto text = url.Param("pipeline")) {
    if (text->empty()) {
      return Error{Code::kInvalid, "pipeline= names no ingest pipeline",
                   "name one, or write pipeline=default for the index's own"};
    }
    options.ingest = *text == "default" ? "" : *text;
  }
  const std::string index = url.path.size() > 1 ? url.path.substr(1) : "";
  if (index.find_first_of("*,") != std::string::npos) {
    return Error{Code::kInvalid, "the sink's URL names a pattern of indices",
                 "write opensearch+https://HOST to keep the names, or one index after the slash"};
  }
  return std::make_unique<OpenSearchSink>(std::move(endpoint), env, index, std::move(options));
}

}  // namespace muster::pipeline
