#include "states/durable/redrive.h"

#include <utility>

#include "core/number.h"
#include "muster/store.h"
#include "states/durable/child_scan.h"
#include "states/durable/load_flow.h"

namespace muster::states {
namespace {

constexpr std::chrono::hours kRedriveWindow{14 * 24};

}  // namespace

Status Redrive::Run(const std::string& name) {
  return store::Update(store_, kKind, name, [&](std::optional<store::Record> stored) {
    return ChangeOf(name, std::move(stored));
  });
}

Result<std::optional<store::Change>> Redrive::ChangeOf(const std::string& name,
                                                       std::optional<store::Record> stored) {
  if (!stored) return NoExecution(name);
  MUSTER_ASSIGN(FlowRecord record, codec_.Decode(*std::move(stored)));
  if (!record.flow.ended())
    return Error{Code::kConflict, "the execution '" + name + "' is running"};
  if (record.flow.status == FlowStatus::kSucceeded) return HasEnded(record);
  if (record.cleanup)
    return Error{Code::kConflict, "the branches of '" + name + "' are still being ended",
                 "try again in a moment"};
  MUSTER_ASSIGN(const WallTime now, store_.Now());
  if (record.stop && now - *record.stop > kRedriveWindow) {
    return Error{Code::kConflict, "the execution '" + name + "' ended more than 14 days ago"};
  }
  if (record.event_count + record.branch_events >= kMaxEvents - 1) {
    return Error{Code::kConflict, "the history of '" + name + "' is full"};
  }
  MUSTER_ASSIGN(auto definition, machines_.FindFor(record));
  MUSTER_TRY(Reset(record, *definition));
  ++record.info.redrive_count;
  if (definition->timeout_s) record.deadline = now + std::chrono::seconds(*definition->timeout_s);
  FlowLog log(record);
  log.Add({.previous = record.flow.last_event,
           .type = "ExecutionRedriven",
           .time = now,
           .details = {{"redriveCount", record.info.redrive_count}}});
  return Released(record);
}

// Lets a flow that has not succeeded run again from where it failed.
Status Redrive::Reset(FlowRecord& record, const Definition& definition) {
  Flow& flow = record.flow;
  flow.status = FlowStatus::kRunning;
  flow.failure = {};
  flow.wants = Wants::kNothing;
  flow.task.reset();
  flow.due.reset();
  flow.backing_off = false;
  flow.results.reset();
  record.stop.reset();
  record.cleanup = false;
  record.cancel.reset();
  record.poll = milliseconds(0);
  flow.inside = flow.failed_children.has_value();
  if (!flow.failed_children) return {};
  flow.children = std::move(flow.failed_children);
  flow.failed_children.reset();
  ChildrenProgress& children = *flow.children;
  children.failed = 0;
  children.settled_below = 0;
  children.settled.clear();
  flow.wants = Wants::kChildren;
  flow.retrier_counts.assign(
      definition.machines[static_cast<size_t>(flow.machine)].states.at(flow.state).retry.size(), 0);
  return ResetChildren(record, definition);
}

// Those that succeeded count as settled; the others run again.
Status Redrive::ResetChildren(FlowRecord& record, const Definition& definition) {
  ChildrenProgress& children = *record.flow.children;
  const std::string prefix = KeyOf(record.execution, ChildPrefix(record.flow));
  for (ChildScan scan(store_, prefix);;) {
    MUSTER_ASSIGN(std::optional<store::Record> stored, scan.Next());
    if (!stored) break;
    MUSTER_ASSIGN(FlowRecord child, codec_.Decode(*std::move(stored)));
    if (child.flow.status == FlowStatus::kSucceeded) {
      const std::string_view key = child.record.key;
      if (const auto index = ParseNumber<int64_t>(key.substr(key.rfind('.') + 1)))
        children.settled.insert(*index);
      continue;
    }
    if (child.flow.ended()) MUSTER_TRY(ResetChild(child.record.key, definition));
  }
  while (children.settled.erase(children.settled_below) > 0) ++children.settled_below;
  return {};
}

// Its record may change concurrently: by a holder that cleans up, or another redrive.
Status Redrive::ResetChild(const std::string& key, const Definition& definition) {
  return store::Update(
      store_, kKind, key,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        if (!stored) return std::nullopt;
        MUSTER_ASSIGN(FlowRecord child, codec_.Decode(*std::move(stored)));
        if (!child.flow.ended() || child.flow.status == FlowStatus::kSucceeded) return std::nullopt;
        MUSTER_TRY(Reset(child, definition));
        return Released(child);
      });
}

// The change that stores a record without an owner, due at once. Writes its parts first.
Result<std::optional<store::Change>> Redrive::Released(FlowRecord& record) {
  FlowCodec::Encoded encoded = codec_.Encode(record);
  if (!encoded.parts.empty()) MUSTER_TRY(store_.Write(encoded.parts));
  store::Record next = record.record;
  next.body = std::move(encoded.body);
  next.owner.clear();
  next.attempt = 0;
  return store::Change::Put(std::move(next), store::Due::AtOnce());
}

}  // namespace muster::states
