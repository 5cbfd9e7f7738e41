#include "store/record_rules.h"

#include <simdjson.h>
#include <algorithm>
#include <string>
#include <tuple>

#include "core/backoff.h"
#include "core/fnv.h"
#include "core/json.h"
#include "core/text_rules.h"

namespace muster::store {
namespace {

// Maps today to a day in the 1970s.
constexpr int64_t kPastShrinks = 10;

Error Invalid(std::string message) { return Error{Code::kInvalid, std::move(message)}; }

Status CheckLimit(std::string_view what, int limit) {
  if (limit < 1 || limit > kMaxBatch) {
    return Invalid(std::string(what) + " of " + std::to_string(limit) + " is outside 1.." +
                   std::to_string(kMaxBatch));
  }
  return {};
}

// For the rare body with a number beyond 64 bits, where the fast parser stops.
bool IsJsonWithLongNumbers(const std::string& body) {
  if (!Json::accept(body)) return false;
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest <= static_cast<size_t>(kMaxBodyDepth);
}

// JSON that every backend accepts: PostgreSQL parses it with limited stack depth.
Status CheckBody(const std::string& body) {
  if (body.size() > kMaxBodyBytes) {
    return Invalid("body has " + std::to_string(body.size()) + " bytes, more than the " +
                   std::to_string(kMaxBodyBytes) + " that are allowed");
  }
  if (body.find('\0') != std::string::npos) return Invalid("body contains a NUL");
  // Reuses its buffers: bodies are checked at every write, and most are small.
  thread_local simdjson::dom::parser parser(kMaxBodyBytes);
  thread_local const auto kAllocated = parser.allocate(kMaxBodyBytes, kMaxBodyDepth);
  const simdjson::error_code found =
      kAllocated != simdjson::SUCCESS ? kAllocated : parser.parse(body).error();
  switch (found) {
    case simdjson::SUCCESS:
      return {};
    case simdjson::UTF8_ERROR:
      return Invalid("body is not valid UTF-8");
    case simdjson::DEPTH_ERROR:
      return Invalid("body is nested more than " + std::to_string(kMaxBodyDepth) + " levels deep");
    case simdjson::NUMBER_ERROR:
      if (IsJsonWithLongNumbers(body)) return {};
      [[fallthrough]];
    default:
      return Invalid("body is not valid JSON");
  }
}

Status CheckChange(const Change& change) {
  const Record& record = change.record;
  MUSTER_TRY(CheckKind(record.kind));
  MUSTER_TRY(CheckKey(record.key));
  if (record.version < 0) return Invalid("version is negative");
  if (change.op == Change::Op::kDelete) {
    if (record.version == 0) return Invalid("a record that must not exist cannot be deleted");
    return {};
  }
  if (record.version == 0) {
    MUSTER_TRY(CheckName("queue", record.queue, kMaxNameBytes));
    if (change.due.kind == Due::Kind::kUnchanged) {
      return Invalid("a new record has no due time to keep");
    }
  }
  if (change.due.delay.count() < 0) return Invalid("due is in the past");
  if (record.attempt < 0) return Invalid("attempt is negative");
  MUSTER_TRY(CheckText("owner", record.owner, kMaxNameBytes));
  return CheckBody(record.body);
}

}  // namespace

Status CheckKind(std::string_view kind) { return CheckName("kind", kind, kMaxNameBytes); }

Status CheckKey(std::string_view key) { return CheckName("key", key, kMaxKeyBytes); }

Status CheckScan(std::string_view kind, std::string_view prefix, std::string_view after,
                 int limit) {
  MUSTER_TRY(CheckKind(kind));
  MUSTER_TRY(CheckText("prefix", prefix, kMaxKeyBytes));
  MUSTER_TRY(CheckText("after", after, kMaxKeyBytes));
  return CheckLimit("a scan", limit);
}

Status CheckChanges(std::span<const Change> changes) {
  if (changes.size() > static_cast<size_t>(kMaxBatch)) {
    return Invalid(std::to_string(changes.size()) + " changes in one write are more than " +
                   std::to_string(kMaxBatch));
  }
  for (const Change& change : changes) {
    if (auto checked = CheckChange(change); !checked) {
      return checked.error().Within("record '" + change.record.key.substr(0, kMaxKeyBytes) + "'");
    }
  }
  if (changes.size() < 2) return {};
  std::vector<std::tuple<std::string_view, std::string_view>> names;
  names.reserve(changes.size());
  for (const Change& change : changes) names.emplace_back(change.record.kind, change.record.key);
  std::sort(names.begin(), names.end());
  if (auto twin = std::adjacent_find(names.begin(), names.end()); twin != names.end()) {
    return Invalid("record '" + std::string(std::get<1>(*twin)) +
                   "' is changed twice in one write");
  }
  return {};
}

Status CheckClaim(const ClaimRequest& request) {
  MUSTER_TRY(CheckKind(request.kind));
  MUSTER_TRY(CheckName("queue", request.queue, kMaxNameBytes));
  MUSTER_TRY(CheckText("key", request.key, kMaxKeyBytes));
  MUSTER_TRY(CheckName("owner", request.owner, kMaxNameBytes));
  MUSTER_TRY(CheckName("claim_id", request.claim_id, kMaxNameBytes));
  MUSTER_TRY(CheckLimit("a claim", request.limit));
  if (request.lease.count() < 1) return Invalid("a lease lasts at least a millisecond");
  if (request.max_lease < request.lease) return Invalid("max_lease is shorter than lease");
  return {};
}

WallTime DueAtOnce(WallTime moment) { return WallTime(moment.time_since_epoch() / kPastShrinks); }

// All other due times are in this century.
bool IsDueAtOnce(WallTime due) {
  using namespace std::chrono;
  return due < sys_days(year(2000) / 1 / 1);
}

int64_t FirstVersion(Env& env) { return static_cast<int64_t>(env.Random() >> 4) + 1; }

int64_t ClaimStep(const ClaimRequest& request) {
  constexpr uint64_t kMost = uint64_t{1} << 20;
  const uint64_t hash = Fnv1a(request.claim_id);
  return static_cast<int64_t>(1 + (hash ^ (hash >> 32)) % kMost);
}

milliseconds LeaseFor(int attempt, milliseconds lease, milliseconds max_lease) {
  return Backoff::Pauses{.first = lease, .longest = max_lease}.After(attempt);
}

}  // namespace muster::store
