#include "pipeline/opensearch/opensearch_stream.h"

#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/backoff.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "pipeline/flow/document_hash.h"
#include "pipeline/opensearch/data_streams.h"

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;
using std::chrono::milliseconds;

constexpr size_t kMostAskedFor = 1'000;  // documents in a request
constexpr size_t kMaxAnswerBytes = 256 * 1024 * 1024;
constexpr milliseconds kLongestRequest{30'000};
constexpr const char* kOther = "the data stream has another document with this id";

bool IsSame(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto one = HashDocument(a, HashTypes::kCompared);
  const auto other = HashDocument(b, HashTypes::kCompared);
  return one && other && *one == *other;
}

// One document of a response to _mget.
struct Found {
  bool found = false;
  std::string problem;  // not empty: it is not known whether the index has it
  int64_t seq_no = -1;
  int64_t primary_term = -1;
  std::string body;
};

Found ReadFound(ondemand::object fields) {
  Found one;
  for (ondemand::field field : fields) {
    const std::string_view name = field.unescaped_key();
    if (name == "found") {
      one.found = field.value().get_bool();
    } else if (name == "_seq_no") {
      one.seq_no = field.value().get_int64();
    } else if (name == "_primary_term") {
      one.primary_term = field.value().get_int64();
    } else if (name == "_source") {
      one.body = std::string_view(field.value().get_object().value().raw_json());
    } else if (name == "error") {
      one.problem = simdjson::to_json_string(field.value()).value();
    }
  }
  // Deleted meanwhile, as old indices of a data stream are.
  if (one.problem.find("index_not_found_exception") != std::string::npos) one.problem.clear();
  return one;
}

Result<std::vector<Found>> ReadAllFound(const std::string& answer) {
  std::vector<Found> all;
  try {
    ondemand::parser parser;
    const simdjson::padded_string padded(answer);
    ondemand::document document = parser.iterate(padded);
    for (ondemand::object one : document["docs"].get_array()) all.push_back(ReadFound(one));
  } catch (const simdjson::simdjson_error& problem) {
    return Error{Code::kUnavailable, std::string("unreadable documents: ") + problem.what()};
  }
  return all;
}

}  // namespace

Result<std::vector<Refused>> OpenSearchStream::Write(OpenSearchBulk& bulk, const Batch& batch,
                                                     const Patience& patience) {
  for (const Document& document : batch.documents) {
    if (!document.deleted) continue;
    return Error{Code::kIncompatible,
                 "'" + name_ + "' is a data stream: nothing is deleted from it",
                 "migrate the whole snapshot, without since=NAME: what is there already stays"};
  }
  MUSTER_ASSIGN(std::vector<Refused> refused, bulk.Write(batch, patience));
  MUSTER_TRY(SettleCreated(bulk, batch, patience, refused));
  MUSTER_TRY(SettleExisting(bulk, batch, patience, refused));
  std::sort(refused.begin(), refused.end(),
            [](const Refused& a, const Refused& b) { return a.index < b.index; });
  return refused;
}

Status OpenSearchStream::SettleCreated(const OpenSearchBulk& bulk, const Batch& batch,
                                       const Patience& patience, std::vector<Refused>& refused) {
  // First: another list gives every index another age, if an old one has been deleted.
  if (std::any_of(bulk.created().begin(), bulk.created().end(),
                  [&](const auto& one) { return AgeOf(one.index) == indices_.size(); })) {
    MUSTER_TRY(AskForIndices(patience));
  }
  std::map<size_t, size_t> ages;
  std::map<size_t, const OpenSearchBulk::Created*> created;
  for (const OpenSearchBulk::Created& one : bulk.created()) {
    const size_t age = AgeOf(one.index);
    if (age == indices_.size()) {
      return Error{Code::kUnavailable, client_.Place() + " does not list index " + one.index +
                                           " of data stream " + name_};
    }
    if (age > 0) ages[one.document] = age;
    created[one.document] = &one;
  }
  MUSTER_ASSIGN(const Copies all, LookUp(bulk, batch, ages, patience));
  for (const auto& [index, copies] : all) {
    const Document& document = batch.documents[index];
    const OpenSearchBulk::Created& ours = *created[index];
    const std::string id = bulk.IdOf(document);
    MUSTER_TRY(Delete(ours.index, id, document, ours.seq_no, ours.primary_term, patience));
    if (!IsSame(copies.front().body, document.body)) refused.push_back({index, kOther});
    MUSTER_TRY(Keep(copies, id, document, patience));
  }
  return {};
}

Status OpenSearchStream::SettleExisting(const OpenSearchBulk& bulk, const Batch& batch,
                                        const Patience& patience, std::vector<Refused>& refused) {
  if (bulk.existing().empty()) return {};
  // Any of them may be in an index that is new.
  MUSTER_TRY(AskForIndices(patience));
  std::map<size_t, size_t> ages;
  for (const size_t index : bulk.existing()) ages[index] = indices_.size();
  MUSTER_ASSIGN(const Copies all, LookUp(bulk, batch, ages, patience));
  for (const size_t index : bulk.existing()) {
    const Document& document = batch.documents[index];
    const auto copies = all.find(index);
    if (copies == all.end()) {
      return Error{Code::kUnavailable, "data stream " + name_ + ": document " +
                                           bulk.IdOf(document) +
                                           " was there, and is not any more: it is written again"};
    }
    if (!IsSame(copies->second.front().body, document.body)) refused.push_back({index, kOther});
    MUSTER_TRY(Keep(copies->second, bulk.IdOf(document), document, patience));
  }
  return {};
}

Status OpenSearchStream::Keep(const std::vector<Copy>& copies, const std::string& id,
                              const Document& document, const Patience& patience) {
  for (size_t i = 1; i < copies.size(); ++i) {
    const Copy& copy = copies[i];
    if (!IsSame(copy.body, copies.front().body) || !IsSame(copy.body, document.body)) continue;
    MUSTER_TRY(Delete(indices_[copy.age], id, document, copy.seq_no, copy.primary_term, patience));
  }
  return {};
}

Status OpenSearchStream::AskForIndices(const Patience& patience) {
  MUSTER_ASSIGN(
      const net::OpenSearchAnswer answer,
      Send({.path = "/_data_stream/" + net::OpenSearchPath(name_), .writes = false}, patience));
  const auto json = ParseJson(answer.body, client_.Place(), {.bytes = answer.body.size()});
  if (!json) return Error{Code::kUnavailable, json.error().message};
  const DataStreams streams = DataStreamsIn(MemberIn(*json, "data_streams"));
  const auto found = streams.find(name_);
  if (found == streams.end() || found->second.indices.empty()) {
    return Error{Code::kNotFound, client_.Place() + " has no data stream '" + name_ + "'"};
  }
  indices_ = found->second.indices;
  return {};
}

size_t OpenSearchStream::AgeOf(const std::string& index) const {
  return static_cast<size_t>(std::find(indices_.begin(), indices_.end(), index) - indices_.begin());
}

Result<OpenSearchStream::Copies> OpenSearchStream::LookUp(const OpenSearchBulk& bulk,
                                                          const Batch& batch,
                                                          const std::map<size_t, size_t>& ages,
                                                          const Patience& patience) {
  std::vector<std::pair<size_t, size_t>> asked;  // document and age
  for (const auto& [document, end] : ages) {
    for (size_t age = 0; age < end; ++age) asked.emplace_back(document, age);
  }
  Copies copies;
  for (size_t begin = 0; begin < asked.size(); begin += kMostAskedFor) {
    const size_t end = std::min(begin + kMostAskedFor, asked.size());
    Json wanted = Json::array();
    for (size_t i = begin; i < end; ++i) {
      const Document& document = batch.documents[asked[i].first];
      Json one{{"_index", indices_[asked[i].second]}, {"_id", bulk.IdOf(document)}};
      if (!document.routing.empty()) one["routing"] = document.routing;
      wanted.push_back(std::move(one));
    }
    // By id and in real time: what is not searchable yet is found, too.
    MUSTER_ASSIGN(const net::OpenSearchAnswer answer,
                  Send({.method = "POST",
                        .path = "/_mget",
                        .body = ToJsonText({{"docs", std::move(wanted)}}),
                        .writes = false,
                        .max_response_bytes = kMaxAnswerBytes},
                       patience));
    MUSTER_ASSIGN(std::vector<Found> found, ReadAllFound(answer.body));
    if (found.size() != end - begin) {
      return Error{Code::kUnavailable, client_.Place() + " answered for other documents"};
    }
    for (size_t i = begin; i < end; ++i) {
      Found& one = found[i - begin];
      if (!one.problem.empty()) return NotSaid(indices_[asked[i].second], one.problem);
      if (!one.found) continue;
      copies[asked[i].first].push_back(
          {asked[i].second, one.seq_no, one.primary_term, std::move(one.body)});
    }
  }
  return copies;
}

Error OpenSearchStream::NotSaid(const std::string& index, const std::string& problem) const {
  const bool is_denied = problem.find("security_exception") != std::string::npos;
  return Error{
      is_denied ? Code::kPermission : Code::kUnavailable,
      client_.Place() + ": index " + index + " does not say whether it has a document: " + problem,
      is_denied ? "a user who writes to a data stream needs the right to read all of its indices "
                  "(indices:data/read/mget)"
                : "all backing indices of a data stream that is written to must be open"};
}

// Only if it is still what was seen: otherwise it is left alone.
Status OpenSearchStream::Delete(const std::string& index, const std::string& id,
                                const Document& document, int64_t seq_no, int64_t primary_term,
                                const Patience& patience) {
  std::string path = "/" + net::OpenSearchPath(index) + "/_doc/" + net::OpenSearchPath(id) +
                     "?if_seq_no=" + std::to_string(seq_no) +
                     "&if_primary_term=" + std::to_string(primary_term);
  if (!document.routing.empty()) path += "&routing=" + net::OpenSearchPath(document.routing);
  const auto deleted = Send({.method = "DELETE", .path = std::move(path)}, patience);
  if (deleted || deleted.error().code == Code::kNotFound ||
      deleted.error().code == Code::kConflict) {
    return {};
  }
  return deleted.error();
}

// Repeated while the cluster is busy: all of these requests can be.
Result<net::OpenSearchAnswer> OpenSearchStream::Send(net::OpenSearchCall call,
                                                     const Patience& patience) {
  using namespace std::chrono_literals;
  Backoff backoff(env_, patience.stop, {.first = 100ms, .longest = 5s});
  while (true) {
    call.timeout = kLongestRequest;
    if (patience.deadline != MonoTime::max()) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(patience.deadline - env_.MonoNow());
      if (left <= 0ms) {
        return Error{Code::kUnavailable, "no time was left for a request to " + client_.Place()};
      }
      call.timeout = std::clamp(left / 2, std::min(left, 1'000ms), kLongestRequest);
    }
    auto answer = client_.Send(call, patience.stop);
    if (answer && answer->status < 300) return answer;
    const Error error = answer ? client_.ErrorOf(call, *answer) : answer.error();
    const auto wait = backoff.Next();
    if (!IsTransient(error.code) || env_.MonoNow() + wait >= patience.deadline) return error;
    if (patience.waits) patience.waits(error);
    if (!env_.Sleep(wait, patience.stop)) {
      return Error{Code::kCancelled, "stopped while waiting for " + client_.Place()};
    }
  }
}

}  // namespace muster::pipeline
