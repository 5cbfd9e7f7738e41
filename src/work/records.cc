#include "work/records.h"

#include <algorithm>
#include <cstdio>

#include "core/record_fields.h"
#include "core/utf8.h"
#include "work/failure_reasons.h"

namespace muster::work {
namespace {

constexpr size_t kLongestRunName = 100;

// A reason of failures.
struct Reason {
  static Json Write(const FailureReason& reason) { return ReasonJson(reason); }
  static void Read(JsonFields& fields, std::string_view name, FailureReason& reason) {
    if (const Json* found = fields.Find(name)) reason = ReadReason(*found, fields);
  }
};

constexpr RecordFields<StopBody, 3> kStopFields{
    {Required<StopBody, &StopBody::read>("read"), Required<StopBody, &StopBody::failed>("failed"),
     Required<StopBody, &StopBody::most, Reason>("most")}};

enum class RunStep { kPreparing, kReady, kFinished };
constexpr EnumNames<RunStep, 3> kRunSteps{{{
    {RunStep::kPreparing, "preparing"},
    {RunStep::kReady, "ready"},
    {RunStep::kFinished, "finished"},
}}};
enum class PrepareStep { kOpen, kDone };
constexpr EnumNames<PrepareStep, 2> kPrepareSteps{{{
    {PrepareStep::kOpen, "open"},
    {PrepareStep::kDone, "done"},
}}};

void PutRunState(const RunBody& from, Json& json, std::string_view name) {
  json[name] = kRunSteps.NameOf(from.finished ? RunStep::kFinished
                                : from.ready  ? RunStep::kReady
                                              : RunStep::kPreparing);
}

void TakeRunState(JsonFields& fields, RunBody& to, std::string_view name) {
  std::string state;
  fields.Need(name, state);
  const auto step = kRunSteps.Find(state);
  if (!step) return fields.Mistake("its state is '" + Shortened(state) + "'");
  to.finished = step == RunStep::kFinished;
  to.ready = to.finished || step == RunStep::kReady;
}

void PutLimit(const RunBody& from, Json& json, std::string_view name) {
  json[name] = from.max_failures.ToString();
}

void TakeLimit(JsonFields& fields, RunBody& to, std::string_view name) {
  std::string text = to.max_failures.ToString();
  fields.Read(name, text);
  const auto limit = FailureLimit::Parse(text);
  if (!limit) fields.Mistake("its limit for failures is damaged");
  if (limit) to.max_failures = *limit;
}

constexpr RecordTable<RunBody, 14> kRunTable{
    kFormat,
    {{
        {"incarnation",
         [](const RunBody& from, Json& json, std::string_view name) {
           json[name] = from.incarnation;
         },
         [](JsonFields& fields, RunBody& to, std::string_view name) {
           fields.Need(name, to.incarnation);
           if (to.incarnation.empty()) fields.Mistake("it has no incarnation");
         }},
        Always<RunBody, &RunBody::adopts>("adopts"),
        {"state", PutRunState, TakeRunState},
        {"pages",
         [](const RunBody& from, Json& json, std::string_view name) { json[name] = from.pages; },
         [](JsonFields& fields, RunBody& to, std::string_view name) {
           fields.Read(name, to.pages);
           if (to.pages < 0) fields.Mistake("its number of pages is negative");
         }},
        Always<RunBody, &RunBody::source>("source"),
        Always<RunBody, &RunBody::sink>("sink"),
        Always<RunBody, &RunBody::transforms>("transforms"),
        Always<RunBody, &RunBody::selection>("selection"),
        {"max_failures", PutLimit, TakeLimit},
        Always<RunBody, &RunBody::created_ms>("created_ms"),
        // Earlier versions recorded neither of these.
        {"since_ms",
         [](const RunBody& from, Json& json, std::string_view name) { json[name] = from.since_ms; },
         [](JsonFields& fields, RunBody& to, std::string_view name) {
           to.since_ms = to.created_ms;
           fields.Read(name, to.since_ms);
         }},
        {"begun_ms",
         [](const RunBody& from, Json& json, std::string_view name) { json[name] = from.begun_ms; },
         [](JsonFields& fields, RunBody& to, std::string_view name) {
           to.begun_ms = to.adopts ? 0 : to.since_ms;
           fields.Read(name, to.begun_ms);
         }},
        Field<RunBody, &RunBody::stopped, Nested<kStopFields>>("stopped"),
        Field<RunBody, &RunBody::removing>("removing"),
    }}};

constexpr RecordTable<PageBody, 1> kPageTable{kFormat,
                                              {{Required<PageBody, &PageBody::items>("items")}}};
constexpr RecordTable<TargetBody, 2> kTargetTable{
    kFormat,
    {{Required<TargetBody, &TargetBody::target>("target"),
      Required<TargetBody, &TargetBody::identity>("identity")}}};

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

constexpr RecordTable<PrepareBody, 5> kPrepareTable{
    kFormat,
    {{
        {"state",
         [](const PrepareBody& from, Json& json, std::string_view name) {
           json[name] = kPrepareSteps.NameOf(from.done ? PrepareStep::kDone : PrepareStep::kOpen);
         },
         [](JsonFields& fields, PrepareBody& to, std::string_view name) {
           std::string state;
           fields.Read(name, state);
           to.done = kPrepareSteps.Find(state) == PrepareStep::kDone;
         }},
        Always<PrepareBody, &PrepareBody::collection>("collection"),
        Always<PrepareBody, &PrepareBody::partitions>("partitions"),
        Required<PrepareBody, &PrepareBody::pages>("pages"),
        Field<PrepareBody, &PrepareBody::selected, Escaped>("selected"),
    }}};

}  // namespace

std::string RunBody::ToJson() const { return kRunTable.ToText(*this); }

Result<RunBody> RunBody::FromJson(const std::string& json) {
  return kRunTable.Parse(json, "the body of a run");
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

std::string PageBody::ToJson() const { return kPageTable.ToText(*this); }

Result<PageBody> PageBody::FromJson(const std::string& json) {
  return kPageTable.Parse(json, "a page of a run");
}

std::string TargetBody::ToJson() const { return kTargetTable.ToText(*this); }

Result<TargetBody> TargetBody::FromJson(const std::string& json) {
  return kTargetTable.Parse(json, "a target of a run");
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

std::string PrepareBody::ToJson() const { return kPrepareTable.ToText(*this); }

Result<PrepareBody> PrepareBody::FromJson(const std::string& json) {
  return kPrepareTable.Parse(json, "the preparation of a run");
}

Status BeginPreparation(store::Store& store, const std::string& run,
                        const std::string& incarnation) {
  const auto begin =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    // Read after the preparation: one that another incarnation begins from here on is a conflict.
    MUSTER_ASSIGN(const std::optional<store::Record> current, store.Get(kRunKind, run));
    if (current) {
      MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(current->body));
      if (body.incarnation != incarnation) return std::nullopt;
    }
    store::Record record =
        std::move(stored).value_or(store::Record{.kind = kPrepareKind, .queue = run, .key = run});
    PrepareBody body;
    const auto before = PrepareBody::FromJson(record.body);
    if (record.version != 0 && before) body.selected = before->selected;
    record.owner.clear();
    record.body = body.ToJson();
    return store::Change::Put(std::move(record), store::Due::AtOnce());
  };
  return store::Update(store, kPrepareKind, run, begin);
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
