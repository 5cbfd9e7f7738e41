#include <algorithm>

#include "core/backoff.h"
#include "core/json.h"
#include "core/number.h"
#include "core/planted_bug.h"
#include "muster/store.h"
#include "states/durable/child_scan.h"
#include "states/durable/engine.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

constexpr int64_t kMaxOpenChildren = 1'000;
constexpr size_t kChildrenPerWrite = 100;
constexpr milliseconds kFirstPoll{20};

// Many branches that end at about the same time wake their parent once.
constexpr int64_t kFewChildren = 16;
constexpr milliseconds kGatherDelay{100};
constexpr milliseconds kLongestPoll{15'000};

// The index of the child with this key; -1: not a child's key.
int64_t IndexOf(std::string_view key) {
  return ParseNumber<int64_t>(key.substr(key.rfind('.') + 1)).value_or(-1);
}

}  // namespace

int64_t MostOpen(const ChildrenProgress& children) {
  return children.concurrency == 0 || PLANTED_BUG(concurrency_is_ignored)
             ? kMaxOpenChildren
             : std::min(kMaxOpenChildren, children.concurrency);
}

// Children are created before the parent's record counts them; creating one again has no effect.
Status Driver::StartChildren(Drive& drive) {
  FlowRecord& record = drive.record();
  Flow& flow = drive.flow();
  const int64_t started_before = flow.children->started;
  std::vector<store::Change> changes;
  std::optional<Failure> failure;
  const auto write = [&]() -> Status {
    if (changes.empty()) return {};
    MUSTER_TRY(RetryBefore(drive.holder.deadline(), env_, [&] { return store_.Write(changes); }));
    changes.clear();
    return {};
  };
  while (flow.children->started < flow.children->total &&
         flow.children->open() < MostOpen(*flow.children)) {
    MUSTER_TRY(codec_.LoadItems(record, flow.children->started));
    auto child = drive.interpreter->StartChild(flow);
    if (!child) {
      failure = std::move(child).error();
      break;
    }
    FlowRecord child_record;
    child_record.execution = record.execution;
    child_record.machine = record.machine;
    child_record.info = record.info;
    child_record.info.input = nullptr;
    child_record.parent = record.record.key;
    child_record.within = record.within;
    child_record.apart = drive.interpreter->StateOf(flow).distributed;
    if (child_record.apart) child_record.info.start = env_.WallNow();
    child_record.first_event = child_record.apart ? 0 : flow.last_event;
    child_record.flow = *std::move(child);
    child_record.record = store::Record{.kind = kKind,
                                        .queue = record.record.queue,
                                        .key = KeyOf(record.execution, child_record.flow.path)};
    FlowCodec::Encoded encoded = codec_.Encode(child_record);
    for (store::Change& part : encoded.parts) changes.push_back(std::move(part));
    child_record.record.body = std::move(encoded.body);
    const store::Due due = PLANTED_BUG(branches_go_by_the_clock)
                               ? store::Due::After(milliseconds(1))
                               : store::Due::AtOnce();
    changes.push_back(store::Change::Put(std::move(child_record.record), due, true));
    if (changes.size() >= kChildrenPerWrite) MUSTER_TRY(write());
  }
  MUSTER_TRY(write());
  const auto begun = static_cast<size_t>(flow.children->started - started_before);
  if (failure) {
    MUSTER_TRY(AbortChildren(drive));
    drive.interpreter->ChildrenFailed(flow, *std::move(failure));
    drive.interpreter->Run(flow);
  }
  record.poll = kFirstPoll;
  Decide(drive);
  Status committed = Commit(drive);
  // This thread takes one of them itself.
  if (begun > 1) signals_.SignalDue(begun - 1);
  return committed;
}

// Accounts for children that have ended since the last look, and continues when all have.
Status Driver::SettleChildren(Drive& drive) {
  FlowRecord& record = drive.record();
  Flow& flow = drive.flow();
  ChildrenProgress& children = *flow.children;
  const std::string prefix = KeyOf(record.execution, ChildPrefix(flow));
  std::string after = children.settled_below == 0
                          ? ""
                          : KeyOf(record.execution, ChildPath(flow, children.settled_below - 1));
  bool progress = false;
  std::optional<Failure> fatal;
  for (ChildScan scan(store_, prefix, std::move(after));;) {
    MUSTER_ASSIGN(std::optional<store::Record> stored, scan.Next());
    if (!stored) break;
    const int64_t index = IndexOf(stored->key);
    if (index < children.settled_below || children.settled.contains(index) ||
        index >= children.started)
      continue;
    if (SaysRunning(stored->body)) continue;
    MUSTER_ASSIGN(const FlowRecord child, codec_.Decode(*std::move(stored)));
    if (!child.flow.ended() || (child.flow.status == FlowStatus::kAborted && !fatal)) continue;
    progress = true;
    children.settled.insert(index);
    if (!child.apart) record.branch_events += child.event_count + child.branch_events;
    if (drive.interpreter->ChildEnded(flow, child.flow) && !fatal) fatal = child.flow.failure;
  }
  while (children.settled.erase(children.settled_below) > 0) ++children.settled_below;
  if (fatal) {
    MUSTER_TRY(AbortChildren(drive));
    drive.interpreter->ChildrenFailed(flow, *std::move(fatal));
    return {};
  }
  if (children.settled_below == children.total) {
    return drive.interpreter->ChildrenSucceeded(flow, ResultsOf(drive));
  }
  // The more children are open, the more a look costs, and the less often it is taken.
  const Backoff::Pauses polls{.first = std::max(kFirstPoll, milliseconds(children.open() / 2)),
                              .longest = kLongestPoll};
  record.poll = polls.Next(progress ? milliseconds(0) : record.poll);
  return {};
}

ChildResults Driver::ResultsOf(Drive& drive) {
  return [this, &drive](int64_t from) { return ResultsFrom(drive, from); };
}

Result<std::vector<ChildResult>> Driver::ResultsFrom(Drive& drive, int64_t from) {
  FlowRecord& record = drive.record();
  const ChildrenProgress& children = *record.flow.children;
  std::vector<ChildResult> results;
  if (from >= children.started) {
    for (; from < children.total && results.size() < size_t{kScanPage}; ++from) {
      MUSTER_TRY(codec_.LoadItems(record, from));
      const auto item = static_cast<size_t>(from - children.items_from);
      results.push_back({.index = from,
                         .status = FlowStatus::kRunning,
                         .input = MakeValue((*children.items)[item])});
    }
    return results;
  }
  const std::string prefix = KeyOf(record.execution, ChildPrefix(record.flow));
  std::string after =
      from == 0 ? "" : KeyOf(record.execution, ChildPath(record.flow, from - 1)) + "/\x7f";
  for (bool more = true; results.empty() && more;) {
    MUSTER_ASSIGN(const std::vector<store::Record> page,
                  store_.Scan(kKind, prefix, after, kScanPage));
    more = page.size() == static_cast<size_t>(kScanPage);
    for (const store::Record& stored : page) {
      after = stored.key;
      // Deeper branches share the prefix.
      if (stored.key.find('/', prefix.size()) != std::string::npos) continue;
      const int64_t index = IndexOf(stored.key);
      if (index < 0) continue;
      MUSTER_ASSIGN(const FlowRecord child, codec_.Decode(stored));
      results.push_back({.index = index,
                         .name = child.record.key,
                         .status = child.flow.status,
                         .input = child.info.input,
                         .output = child.flow.output,
                         .failure = child.flow.failure,
                         .start = child.info.start,
                         .stop = child.stop.value_or(child.info.start)});
    }
  }
  return results;
}

// Ends every running child, including those that were created before a crash or a stop kept the
// parent's record from counting them. A child's holder notices at its next look.
Status Driver::AbortChildren(Drive& drive) {
  const FlowRecord& record = drive.record();
  for (ChildScan scan(store_, KeyOf(record.execution, ChildPrefix(record.flow)));;) {
    MUSTER_ASSIGN(const std::optional<store::Record> child, scan.Next());
    if (!child) return {};
    MUSTER_TRY(EndFrom(child->key, FlowStatus::kAborted, {}));
  }
}

Status Driver::EndFrom(const std::string& key, FlowStatus status, const Failure& failure) {
  const auto end =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    if (!stored) return std::nullopt;
    MUSTER_ASSIGN(FlowRecord record, codec_.Decode(*std::move(stored)));
    if (record.flow.ended()) return std::nullopt;
    MUSTER_ASSIGN(auto definition, machines_.FindFor(record));
    FlowLog log(record);
    Interpreter interpreter(definition, record.info, env_, jsonata_, log);
    EndFlow(record, interpreter, status, failure, env_.WallNow());
    FlowCodec::Encoded encoded = codec_.Encode(record);
    if (!encoded.parts.empty()) MUSTER_TRY(store_.Write(encoded.parts));
    store::Record next = record.record;
    next.body = std::move(encoded.body);
    return store::Change::Put(std::move(next),
                              record.cleanup ? store::Due::AtOnce() : store::Due::Never());
  };
  return store::Update(store_, kKind, key, end);
}

void EndFlow(FlowRecord& record, Interpreter& interpreter, FlowStatus status,
             const Failure& failure, WallTime now) {
  Flow& flow = record.flow;
  if (flow.children) flow.failed_children = flow.children;
  if (flow.task && flow.task->pending) record.cancel = flow.task;
  record.cleanup = flow.children.has_value() || record.cancel.has_value();
  interpreter.Abort(flow);
  flow.children.reset();
  flow.status = status;
  flow.failure = failure;
  record.stop = now;
  if (record.is_root()) interpreter.End(flow);
}

Status Driver::CleanUp(Drive& drive) {
  FlowRecord& record = drive.record();
  if (!record.cleanup) return {};
  if (record.flow.failed_children) MUSTER_TRY(AbortChildren(drive));
  if (record.cancel) {
    if (TaskExecutor* executor = ExecutorFor(record.cancel->resource)) {
      Flow view = record.flow;
      view.task = record.cancel;
      CallContext context(*this, drive, {});
      const TaskCall call =
          CallOf(view, drive.interpreter->StateOf(view), record.info, env_.WallNow());
      executor->Cancel(call, record.cancel->resume, context);
    }
    record.cancel.reset();
  }
  record.cleanup = false;
  return {};
}

size_t Driver::NotifyParents() {
  const std::set<std::string> parents = std::exchange(parents_, {});
  for (const std::string& key : parents) NotifyParent(key);
  return parents.size();
}

void Driver::NotifyParent(const std::string& key) {
  signals_.AddEndedBranch(key);
  auto parent = store_.Get(kKind, key);
  // Its holder sees that the branch has ended when it releases the record.
  if (parent && *parent && !(*parent)->owner.empty()) return;
  signals_.TakeEndedBranch(key);
  // It polls its branches: this only makes it due earlier.
  if (!parent || !*parent || !(*parent)->due) return;
  if (*(*parent)->due <= env_.WallNow()) return;
  auto decoded = codec_.Decode(**parent);
  if (!decoded || decoded->flow.wants != Wants::kChildren || !decoded->flow.children) return;
  const milliseconds delay =
      decoded->flow.children->open() <= kFewChildren ? milliseconds(0) : kGatherDelay;
  if (*(*parent)->due <= env_.WallNow() + delay) return;
  const store::Change change =
      store::Change::Put(**std::move(parent), store::Due::After(delay), true);
  static_cast<void>(store_.Write({&change, 1}));
}

}  // namespace muster::states
