#include "work/records.h"

#include <algorithm>
#include <cstdio>

#include "core/base64.h"
#include "core/escape_bytes.h"
#include "core/record_fields.h"
#include "core/utf8.h"
#include "work/failure_reasons.h"

namespace muster::work {
namespace {

constexpr size_t kLongestRunName = 100;
constexpr size_t kLetterBytes = 8;
constexpr size_t kMostRedrivenItems = 500;  // in one record

// Eight bytes each, big-endian.
template <class Letters>
std::string PackLetters(const Letters& letters) {
  std::string bytes;
  bytes.reserve(letters.size() * kLetterBytes);
  for (const uint64_t letter : letters) {
    for (size_t i = kLetterBytes; i-- > 0;) bytes += static_cast<char>(letter >> (8 * i));
  }
  return EncodeBase64(bytes);
}

template <class Letters>
bool UnpackLetters(const std::string& text, Letters& letters) {
  const auto bytes = DecodeBase64(text);
  if (!bytes || bytes->size() % kLetterBytes != 0) return false;
  for (size_t at = 0; at < bytes->size(); at += kLetterBytes) {
    uint64_t letter = 0;
    for (size_t i = 0; i < kLetterBytes; ++i) {
      letter = letter << 8 | static_cast<unsigned char>((*bytes)[at + i]);
    }
    letters.insert(letters.end(), letter);
  }
  return true;
}

constexpr RecordTable<EndBody, 1> kEndTable{kFormat,
                                            {{Field<EndBody, &EndBody::confirmed>("confirmed")}}};
constexpr RecordTable<SplitRequestBody, 1> kSplitRequestTable{
    kFormat, {{Field<SplitRequestBody, &SplitRequestBody::by>("by")}}};

constexpr RecordTable<BudgetBody, 4> kBudgetTable{
    kFormat,
    {{Field<BudgetBody, &BudgetBody::read>("read"),
      Field<BudgetBody, &BudgetBody::failed>("failed"),
      Field<BudgetBody, &BudgetBody::earlier_read>("earlier_read"),
      Field<BudgetBody, &BudgetBody::earlier_failed>("earlier_failed")}}};

Json StopJson(const StopBody& stop) {
  return {{"read", stop.read}, {"failed", stop.failed}, {"most", ReasonJson(stop.most)}};
}

StopBody ReadStop(const Json& json, JsonFields& fields) {
  StopBody stop;
  Json most;
  JsonFields members(json);
  members.Need("read", stop.read).Need("failed", stop.failed).Need("most", most);
  if (!members.good()) fields.Mistake("why it is stopped is damaged");
  stop.most = ReadReason(most, fields);
  return stop;
}

std::string WithFormat(Json body) {
  body[kVersionField] = kFormat.version;
  return ToJsonText(body);
}

}  // namespace

std::string RunBody::ToJson() const {
  Json json{{"incarnation", incarnation},
            {"adopts", adopts},
            {"state", finished ? "finished"
                      : ready  ? "ready"
                               : "preparing"},
            {"pages", pages},
            {"source", source},
            {"sink", sink},
            {"transforms", transforms},
            {"selection", selection ? Json(*selection) : Json()},
            {"max_failures", max_failures.ToString()},
            {"created_ms", created_ms},
            {"since_ms", since_ms},
            {"begun_ms", begun_ms}};
  if (stopped) json["stopped"] = StopJson(*stopped);
  if (removing) json["removing"] = true;
  return WithFormat(std::move(json));
}

Result<RunBody> RunBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "the body of a run";
  RunBody body;
  std::string state;
  std::string limit = body.max_failures.ToString();
  Json stopped;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Need("state", state)
      .Read("max_failures", limit)
      .Read("stopped", stopped)
      .Read("removing", body.removing)
      .Need("incarnation", body.incarnation)
      .Read("adopts", body.adopts)
      .Read("pages", body.pages)
      .Read("source", body.source)
      .Read("sink", body.sink)
      .Read("transforms", body.transforms)
      .Read("selection", body.selection)
      .Read("created_ms", body.created_ms);
  body.since_ms = body.created_ms;
  fields.Read("since_ms", body.since_ms);
  // Earlier versions did not record it.
  body.begun_ms = body.adopts ? 0 : body.since_ms;
  fields.Read("begun_ms", body.begun_ms);
  if (state != "preparing" && state != "ready" && state != "finished") {
    fields.Mistake("its state is '" + Shortened(state) + "'");
  }
  if (body.incarnation.empty()) fields.Mistake("it has no incarnation");
  if (body.pages < 0) fields.Mistake("its number of pages is negative");
  const auto max_failures = FailureLimit::Parse(limit);
  if (!max_failures) fields.Mistake("its limit for failures is damaged");
  if (max_failures) body.max_failures = *max_failures;
  if (!stopped.is_null()) body.stopped = ReadStop(stopped, fields);
  MUSTER_TRY(fields.Check(kWhat));
  body.finished = state == "finished";
  body.ready = body.finished || state == "ready";
  return body;
}

std::string WhyStopped(const RunBody& body) {
  if (!body.stopped) return "";
  const StopBody& stop = *body.stopped;
  std::string why = "more than " + body.max_failures.ToString() +
                    " of its documents have failed: " + std::to_string(stop.failed) + " of " +
                    std::to_string(stop.read);
  if (stop.most.count == 0) return why;
  why += ", most of them (" + std::to_string(stop.most.count) +
         ") for this reason: " + stop.most.reason;
  if (stop.most.message.empty()) return why;
  return why + "; for example" + (stop.most.id.empty() ? "" : " document '" + stop.most.id + "'") +
         ": " + stop.most.message;
}

Status CheckGoesOn(const std::string& run, const RunBody& body) {
  if (body.removing) {
    return Error{Code::kConflict, "run '" + run + "' is being removed",
                 "if no process is removing it any more, repeat 'muster work delete' or 'reset'"};
  }
  if (!body.stopped) return {};
  return Error{Code::kIncompatible, "run '" + run + "' is stopped: " + WhyStopped(body),
               kStoppedHint};
}

std::string PageBody::ToJson() const { return WithFormat(Json{{"items", items}}); }

Result<PageBody> PageBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "a page of a run";
  PageBody body;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Need("items", body.items);
  MUSTER_TRY(fields.Check(kWhat));
  return body;
}

std::string TargetBody::ToJson() const {
  return WithFormat(Json{{"target", target}, {"identity", identity}});
}

Result<TargetBody> TargetBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "a target of a run";
  TargetBody body;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Need("target", body.target).Need("identity", body.identity);
  MUSTER_TRY(fields.Check(kWhat));
  return body;
}

RedriveBody::Outcome& RedriveBody::Outcome::operator+=(const Outcome& other) {
  written += other.written;
  skipped += other.skipped;
  added += other.added;
  return *this;
}

void RedriveBody::Count(const std::string& item, const Outcome& outcome) {
  total += outcome;
  if (items.size() >= kMostRedrivenItems && !items.contains(item)) return;
  items[item] += outcome;
}

std::string RedriveBody::ToJson() const {
  Json by_item = Json::object();
  for (const auto& [item, outcome] : items) {
    by_item[item] = Json::array({outcome.written, outcome.skipped});
    if (outcome.added != 0) by_item[item].push_back(outcome.added);
  }
  Json json{{"letters", PackLetters(letters)},
            {"written", total.written},
            {"skipped", total.skipped},
            {"items", std::move(by_item)}};
  if (total.added != 0) json["added"] = total.added;
  return WithFormat(std::move(json));
}

Result<RedriveBody> RedriveBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "a redrive";
  RedriveBody body;
  std::string letters;
  std::map<std::string, std::vector<int64_t>> by_item;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Read("letters", letters)
      .Need("written", body.total.written)
      .Read("skipped", body.total.skipped)
      .Read("added", body.total.added)
      .Read("items", by_item);
  if (!UnpackLetters(letters, body.letters)) fields.Mistake("its letters are damaged");
  for (const auto& [item, counts] : by_item) {
    if (counts.size() != 2 && counts.size() != 3) {
      fields.Mistake("its items are damaged");
      continue;
    }
    body.items[item] = {counts[0], counts[1], counts.size() == 3 ? counts[2] : 0};
  }
  MUSTER_TRY(fields.Check(kWhat));
  return body;
}

std::string RedrivePageBody::ToJson() const {
  return WithFormat(Json{{"number", number},
                         {"target", target},
                         {"letters", PackLetters(letters)},
                         {"items", items},
                         {"item_of", item_of},
                         {"failed", failed}});
}

Result<RedrivePageBody> RedrivePageBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "a page of a redrive";
  RedrivePageBody body;
  std::string letters;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Need("number", body.number)
      .Read("target", body.target)
      .Read("letters", letters)
      .Read("items", body.items)
      .Read("item_of", body.item_of)
      .Read("failed", body.failed);
  if (!UnpackLetters(letters, body.letters)) fields.Mistake("its letters are damaged");
  bool whole = body.item_of.size() == body.letters.size();
  for (const int64_t item : body.item_of) {
    whole = whole && item >= 0 && item < static_cast<int64_t>(body.items.size());
  }
  if (!whole) fields.Mistake("its items are damaged");
  MUSTER_TRY(fields.Check(kWhat));
  return body;
}

std::string RedriveLeaseKey(const std::string& run) { return run + "/lease"; }

std::string RedriveKey(const std::string& run, uint64_t letter) {
  char digits[4];
  std::snprintf(digits, sizeof digits, "/%02x", static_cast<unsigned>(letter >> 56));
  return run + digits;
}

std::string PageKey(const std::string& run, int page) {
  char number[16];
  std::snprintf(number, sizeof number, "/%06d", page);
  return run + number;
}

std::string EndKey(const std::string& run, const std::string& incarnation, int page) {
  const std::string key = run + "/" + incarnation;
  return page == 0 ? key : PageKey(key, page);
}

Result<bool> IsFinished(store::Store& store, const std::string& run, const RunBody& body) {
  if (body.finished) return true;
  MUSTER_ASSIGN(const std::optional<store::Record> end,
                store.Get(kEndKind, EndKey(run, body.incarnation)));
  if (!end) return false;
  MUSTER_ASSIGN(const EndBody read, EndBody::FromJson(end->body));
  return read.confirmed;
}

std::string EndBody::ToJson() const { return ToJsonText(kEndTable.ToJson(*this)); }

Result<EndBody> EndBody::FromJson(const std::string& json) {
  return kEndTable.Parse(json, "the end of a run");
}

std::string BudgetBody::ToJson() const { return ToJsonText(kBudgetTable.ToJson(*this)); }

Result<BudgetBody> BudgetBody::FromJson(const std::string& json) {
  return kBudgetTable.Parse(json, "the count of a run's failures");
}

std::string SplitRequestBody::ToJson() const {
  return ToJsonText(kSplitRequestTable.ToJson(*this));
}

Result<SplitRequestBody> SplitRequestBody::FromJson(const std::string& json) {
  return kSplitRequestTable.Parse(json, "the request to split an item");
}

std::string PrepareBody::ToJson() const {
  Json json{{"state", done ? "done" : "open"},
            {"collection", collection},
            {"partitions", partitions},
            {"pages", pages}};
  if (!selected.empty()) {
    json["selected"] = Json::array();
    for (const std::string& name : selected) json["selected"].push_back(EscapeBytes(name));
  }
  return WithFormat(std::move(json));
}

Result<PrepareBody> PrepareBody::FromJson(const std::string& json) {
  constexpr std::string_view kWhat = "the preparation of a run";
  PrepareBody body;
  std::string state;
  MUSTER_ASSIGN(Json parsed, ParseBody(json, kWhat));
  JsonFields fields(std::move(parsed));
  fields.Read("state", state)
      .Read("selected", body.selected)
      .Read("collection", body.collection)
      .Read("partitions", body.partitions)
      .Need("pages", body.pages);
  for (std::string& name : body.selected) {
    auto bytes = UnescapeBytes(name);
    if (!bytes) fields.Mistake("a selected collection has an invalid name");
    if (bytes) name = *std::move(bytes);
  }
  MUSTER_TRY(fields.Check(kWhat));
  body.done = state == "done";
  return body;
}

Status BeginPreparation(store::Store& store, const std::string& run) {
  store::Record record{.kind = kPrepareKind, .queue = run, .key = run};
  MUSTER_ASSIGN(const std::optional<store::Record> stored, store.Get(record.kind, record.key));
  PrepareBody body;
  if (stored) {
    record = *stored;
    const auto before = PrepareBody::FromJson(stored->body);
    if (before) body.selected = before->selected;
  }
  record.owner.clear();
  record.body = body.ToJson();
  const store::Change change = store::Change::Put(std::move(record), store::Due::AtOnce());
  MUSTER_TRY(store.Write({&change, 1}));
  return {};
}

store::Change NewItem(const std::string& run, const ItemBody& body) {
  return store::Change::Put(store::Record{.kind = kWorkKind,
                                          .queue = run,
                                          .key = ItemKey(run, NameOf(body.partition)),
                                          .body = body.ToJson()},
                            store::Due::AtOnce());
}

Status CheckRunName(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kLongestRunName &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return Error{Code::kInvalid, "'" + name + "' cannot be the name of a run",
               "use up to 100 letters, digits, '-', '_' and '.'"};
}

}  // namespace muster::work
