#include "pipeline/opensearch/opensearch_bulk.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/backoff.h"
#include "core/json.h"
#include "core/sha256.h"
#include "net/opensearch_errors.h"

namespace muster::pipeline {
namespace {

namespace ondemand = simdjson::ondemand;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{5'000};
constexpr milliseconds kLongestRequest{60'000};
// After this long without any document accepted, retrying will not help.
constexpr std::chrono::minutes kHopeless{3};
constexpr size_t kIdDigits = 32;
// A single longer id makes the server reject the whole request.
constexpr size_t kLongestIdBytes = 512;
// Retries for documents that lost a race for a field's type.
constexpr int kMostRaces = 5;
// A version encodes the document's time, then the writer's rank, then leaves room for changes made
// in the target, each of which adds one.
constexpr int kTimeShift = 20;
constexpr int kRankShift = 8;
constexpr int64_t kHighestRank = (int64_t{1} << (kTimeShift - kRankShift)) - 1;

int64_t TimeIn(int64_t version) { return version >> kTimeShift; }
int64_t RankIn(int64_t version) { return version >> kRankShift & kHighestRank; }

// One item of a bulk response.
struct ItemAnswer {
  int64_t status = 0;
  std::string type = {};
  std::string reason = {};
};

ItemAnswer ReadItem(ondemand::object item) {
  ItemAnswer answer;
  for (ondemand::field field : item) {
    const std::string_view name = field.unescaped_key();
    if (name == "status") {
      answer.status = field.value().get_int64();
    } else if (name == "error") {
      for (ondemand::field detail : field.value().get_object()) {
        const std::string_view key = detail.unescaped_key();
        if (key == "type") answer.type = std::string_view(detail.value().get_string());
        if (key == "reason") answer.reason = std::string_view(detail.value().get_string());
        if (key != "caused_by") continue;
        for (ondemand::field cause : detail.value().get_object()) {
          if (cause.unescaped_key().value() != "reason") continue;
          answer.reason += ": ";
          answer.reason += std::string_view(cause.value().get_string());
        }
      }
    }
  }
  return answer;
}

Error ErrorOf(const std::string& index, const ItemAnswer& item) {
  Error error = net::OpenSearchError(
      {.status = static_cast<int>(item.status), .type = item.type, .reason = item.reason}, true);
  error.message = "index " + index + ": " + item.type + ": " + item.reason;
  return error;
}

// Two documents introduced the same field with conflicting types and this one came second: with the
// mapping as it is now, it may well be accepted.
bool LostAMappingRace(const ItemAnswer& item) {
  return item.type == "illegal_argument_exception" &&
         (item.reason.find("cannot be changed from type") != std::string::npos ||
          item.reason.find("of different type, current_type") != std::string::npos);
}

// From "… version conflict, current version [7] is higher than the one provided [5]"; 0: not found.
int64_t CurrentVersion(const std::string& reason) {
  static constexpr std::string_view kBefore = "current version [";
  const size_t found = reason.find(kBefore);
  if (found == std::string::npos) return 0;
  int64_t version = 0;
  const char* const end = reason.data() + reason.size();
  std::from_chars(reason.data() + found + kBefore.size(), end, version);
  return version;
}

// A retried document must not overwrite a later version of it that was already accepted: the later
// one is sent again too.
std::vector<size_t> WithLaterVersions(const Batch& batch, const std::vector<size_t>& sent,
                                      const std::vector<size_t>& again,
                                      const std::vector<Refused>& refused) {
  std::set<size_t> gone;
  for (const Refused& each : refused) gone.insert(each.index);
  std::set<std::string_view> ids;
  std::vector<size_t> all;
  auto next = again.begin();
  for (const size_t index : sent) {
    const std::string_view id = batch.documents[index].id;
    if (next != again.end() && *next == index) {
      ++next;
      ids.insert(id);
      all.push_back(index);
    } else if (!id.empty() && ids.contains(id) && !gone.contains(index)) {
      all.push_back(index);
    }
  }
  return all;
}

}  // namespace

// Snapshot documents have their own version and need no rank: every writer writes the same bytes.
// All others get the version of the run and of the holder that read them.
int64_t OpenSearchBulk::VersionOf(const Document& document) const {
  if (document.version != 0) return document.version << kTimeShift;
  if (since_ms_ == 0) return 0;
  // As many steps per millisecond as snapshots have, see DeleteVersion.
  return (2 * since_ms_) << kTimeShift | std::min(rank_, kHighestRank) << kRankShift;
}

void OpenSearchBulk::AppendAction(const Document& document, std::string& body) const {
  body += document.deleted ? R"({"delete":{"_id":)" : R"({"index":{"_id":)";
  if (document.id.empty()) {
    std::string place = origin_;
    place += '\0';
    place += document.position;
    AppendJsonString(body, Sha256Hex(place).substr(0, kIdDigits));
  } else {
    AppendJsonString(body, document.id);
  }
  if (!document.routing.empty()) {
    body += R"(,"routing":)";
    AppendJsonString(body, document.routing);
  }
  if (const int64_t version = VersionOf(document); version != 0) {
    body += R"(,"version":)" + std::to_string(version);
    body += R"(,"version_type":"external_gte")";
  }
  body += "}}\n";
  if (document.deleted) return;
  const size_t start = body.size();
  body += document.body;
  // In JSON a raw line break is only white space (those in strings are escaped), but it would end
  // the document in a bulk body.
  std::replace_if(
      body.begin() + static_cast<std::ptrdiff_t>(start), body.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
  body += '\n';
}

Status OpenSearchBulk::Judge(const Batch& batch, const std::vector<size_t>& sent,
                             const std::string& answer, Round& round,
                             std::vector<Refused>& refused) {
  const Error unreadable{Code::kUnknownOutcome,
                         client_.Place() + " sent an unreadable response to a bulk request"};
  try {
    ondemand::parser parser;
    const simdjson::padded_string padded(answer);
    ondemand::document document = parser.iterate(padded);
    if (!document["errors"].get_bool()) return {};
    size_t at = 0;
    for (ondemand::object item : document["items"].get_array()) {
      if (at == sent.size()) return unreadable;
      const size_t index = sent[at++];
      const Document& about = batch.documents[index];
      const ItemAnswer said = ReadItem(item[about.deleted ? "delete" : "index"].get_object());
      if (said.status < 300) continue;
      // Already deleted.
      if (about.deleted && said.status == 404 && said.type.empty()) continue;
      const int64_t version = VersionOf(about);
      if (version != 0 && said.status == 409) {
        const int64_t current = CurrentVersion(said.reason);
        if (!yields_ && about.version == 0 &&
            (current == 0 ||
             (TimeIn(current) == TimeIn(version) && RankIn(current) > RankIn(version)))) {
          return Error{Code::kLeaseLost, "index " + index_ + ": document " + std::string(about.id) +
                                             " was written by a later holder: " + said.reason};
        }
        refused.push_back({index, "the index has a later version of it", true});
        continue;
      }
      const Error error = ErrorOf(index_, said);
      // Versions decide, so an item may be sent again even if it was applied.
      if (IsTransient(error.code) || error.code == Code::kConflict ||
          (LostAMappingRace(said) && ++races_[index] <= kMostRaces)) {
        round.again.push_back(index);
        round.overloaded |= said.status == 429 && error.code != Code::kReadOnly;
        round.why = error;
      } else if (error.code != Code::kInvalid) {
        return error;  // not about this document
      } else {
        refused.push_back({index, said.type + ": " + said.reason});
      }
    }
    if (at != sent.size()) return unreadable;
  } catch (const simdjson::simdjson_error&) {
    return unreadable;
  }
  if (!round.again.empty()) round.again = WithLaterVersions(batch, sent, round.again, refused);
  return {};
}

Result<OpenSearchBulk::Round> OpenSearchBulk::Send(const Batch& batch,
                                                   const std::vector<size_t>& sent,
                                                   const Patience& patience,
                                                   std::vector<Refused>& refused) {
  net::OpenSearchCall call{.method = "POST",
                           .path = "/" + net::OpenSearchPath(index_) +
                                   "/_bulk?filter_path=errors,items.*.status,items.*.error",
                           .content_type = "application/x-ndjson",
                           .gzip = options_.gzip};
  if (!options_.ingest.empty()) call.path += "&pipeline=" + net::OpenSearchPath(options_.ingest);
  for (const size_t index : sent) AppendAction(batch.documents[index], call.body);
  Round round;
  if (!pace_.Begin(patience)) {
    round.again = sent;
    round.why = Error{Code::kUnavailable, client_.Place() + " is too busy"};
    return round;
  }
  call.timeout = kLongestRequest;
  if (patience.deadline != MonoTime::max()) {
    const auto left = std::chrono::duration_cast<milliseconds>(patience.deadline - env_.MonoNow());
    if (left <= milliseconds(0)) {
      pace_.Failed();
      return Error{Code::kUnavailable, "no time was left for a request to " + client_.Place()};
    }
    call.timeout = std::clamp(left / 2, std::min(left, milliseconds(1'000)), kLongestRequest);
  }
  const auto answer = client_.Send(call, patience.stop);
  if (!answer) {
    pace_.Failed();
    if (!IsTransient(answer.error().code)) return answer.error();
    round.again = sent;
    round.why = answer.error();
    return round;
  }
  if (answer->status == 413) {
    pace_.Failed();
    return SendHalves(batch, sent, patience, refused);
  }
  if (answer->status >= 300) {
    round.why = client_.ErrorOf(call, *answer);
    round.overloaded = answer->status == 429 || answer->status == 503;
    if (!round.overloaded && !IsTransient(round.why.code)) {
      pace_.Failed();
      return round.why;
    }
    round.again = sent;
  } else {
    const Status judged = Judge(batch, sent, answer->body, round, refused);
    if (!judged) {
      pace_.Failed();
      return judged.error();
    }
  }
  round.retry_after = answer->retry_after.value_or(milliseconds(0));
  round.overloaded ? pace_.Overloaded() : pace_.Accepted();
  return round;
}

Result<OpenSearchBulk::Round> OpenSearchBulk::SendHalves(const Batch& batch,
                                                         const std::vector<size_t>& sent,
                                                         const Patience& patience,
                                                         std::vector<Refused>& refused) {
  if (sent.size() == 1) {
    refused.push_back(
        {sent[0], "larger than " + client_.Place() + " accepts in one request (413)"});
    return Round{};
  }
  const auto middle = sent.begin() + static_cast<std::ptrdiff_t>(sent.size() / 2);
  MUSTER_ASSIGN(Round round, Send(batch, {sent.begin(), middle}, patience, refused));
  MUSTER_ASSIGN(Round second, Send(batch, {middle, sent.end()}, patience, refused));
  round.again.insert(round.again.end(), second.again.begin(), second.again.end());
  if (!second.again.empty()) round.why = second.why;
  round.retry_after = std::max(round.retry_after, second.retry_after);
  return round;
}

Result<std::vector<Refused>> OpenSearchBulk::Write(const Batch& batch, const Patience& patience) {
  races_.clear();
  std::vector<Refused> refused;
  std::vector<size_t> left;
  for (size_t i = 0; i < batch.documents.size(); ++i) {
    if (const size_t size = batch.documents[i].id.size(); size > kLongestIdBytes) {
      refused.push_back({i, "its id has " + std::to_string(size) + " bytes; the limit is " +
                                std::to_string(kLongestIdBytes)});
    } else {
      left.push_back(i);
    }
  }
  Backoff backoff(env_, patience.stop, {.first = kFirstPause, .longest = kLongestPause});
  MonoTime progress = env_.MonoNow();
  while (!left.empty()) {
    MUSTER_ASSIGN(Round round, Send(batch, left, patience, refused));
    const MonoTime now = env_.MonoNow();
    if (round.again.size() < left.size()) {
      progress = now;
      backoff.Reset();
    }
    left = std::move(round.again);
    if (left.empty()) break;
    const auto wait = std::max<std::chrono::nanoseconds>(backoff.Next(), round.retry_after);
    if (now + wait >= patience.deadline || now - progress > kHopeless) return round.why;
    if (patience.waits) patience.waits(round.why);
    if (!env_.Sleep(wait, patience.stop)) {
      return Error{Code::kCancelled, "stopped while " + std::to_string(left.size()) +
                                         " documents were not accepted yet"};
    }
  }
  std::sort(refused.begin(), refused.end(),
            [](const Refused& a, const Refused& b) { return a.index < b.index; });
  return refused;
}

}  // namespace muster::pipeline
