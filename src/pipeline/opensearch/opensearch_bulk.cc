#include "pipeline/opensearch/opensearch_bulk.h"

#include <algorithm>
#include <set>

#include "core/backoff.h"
#include "core/json.h"
#include "core/sha256.h"
#include "net/opensearch_errors.h"
#include "pipeline/opensearch/opensearch_bulk_item.h"

namespace muster::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{5'000};
constexpr milliseconds kLongestRequest{60'000};
// After this long without any document accepted, retrying will not help.
constexpr std::chrono::minutes kHopeless{3};
constexpr size_t kIdDigits = 32;
constexpr const char* kResult = ",items.*.result";
constexpr const char* kPlaces = ",items.*._index,items.*._seq_no,items.*._primary_term";
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

std::string OpenSearchBulk::IdOf(const Document& document) const {
  if (!document.id.empty()) return std::string(document.id);
  std::string place = origin_;
  place += '\0';
  place += document.position;
  return Sha256Hex(place).substr(0, kIdDigits);
}

void OpenSearchBulk::AppendAction(const Document& document, std::string& body) const {
  body += document.deleted ? R"({"delete":{"_id":)"
          : creates_       ? R"({"create":{"_id":)"
                           : R"({"index":{"_id":)";
  AppendJsonString(body, IdOf(document));
  if (!document.routing.empty()) {
    body += R"(,"routing":)";
    AppendJsonString(body, document.routing);
  }
  if (const int64_t version = creates_ ? 0 : VersionOf(document); version != 0) {
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
  const auto items = ReadBulkItems(answer, creates_ || HasPipeline());
  if (items && !*items) return {};
  if (!items || (*items)->size() != sent.size()) {
    return Error{Code::kUnknownOutcome,
                 client_.Place() + " sent an unreadable response to a bulk request"};
  }
  for (size_t at = 0; at < sent.size(); ++at) {
    MUSTER_TRY(JudgeOne(batch.documents[sent[at]], sent[at], (**items)[at], round, refused));
  }
  if (!round.again.empty() && !creates_) {
    round.again = WithLaterVersions(batch, sent, round.again, refused);
  }
  return {};
}

Status OpenSearchBulk::JudgeOne(const Document& about, size_t index, const BulkItem& said,
                                Round& round, std::vector<Refused>& refused) {
  if (said.status < 300 && said.is_dropped && !about.deleted) {
    refused.push_back({index, "an ingest pipeline drops it", true});
    return {};
  }
  if (creates_ && said.status < 300) {
    created_.push_back({index, said.index, said.seq_no, said.primary_term});
    return {};
  }
  if (said.status < 300) return {};
  // Already deleted.
  if (about.deleted && said.status == 404 && said.type.empty()) return {};
  if (creates_ && said.status == 409) {
    existing_.push_back(index);
    return {};
  }
  if (!creates_ && IsOfDataStream(said)) {
    met_data_stream_ = true;
    return ErrorOf(index_, said);
  }
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
    return {};
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
  return {};
}

Result<OpenSearchBulk::Round> OpenSearchBulk::Send(const Batch& batch,
                                                   const std::vector<size_t>& sent,
                                                   const Patience& patience,
                                                   std::vector<Refused>& refused) {
  net::OpenSearchCall call{.method = "POST",
                           .path = "/" + net::OpenSearchPath(index_) +
                                   "/_bulk?filter_path=errors,items.*.status,items.*.error" +
                                   (creates_ ? kPlaces : "") +
                                   (creates_ || HasPipeline() ? kResult : ""),
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
  created_.clear();
  existing_.clear();
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
