#include "work/target_check.h"

#include "core/sha256.h"
#include "pipeline/pipeline.h"
#include "store/store.h"
#include "work/records.h"

namespace muster::work {
namespace {

std::string KeyOf(const std::string& run, const std::string& incarnation,
                  const std::string& target) {
  return run + "/" + incarnation + "/" + Sha256Hex(target).substr(0, 32);
}

Error Changed(const std::string& target, const std::string& how) {
  return Error{Code::kIncompatible,
               "'" + target + "' is not the target that this run began to write to: " + how,
               pipeline::kLostTargetHint, Party::kSink};
}

}  // namespace

Status TargetCheck::Check(pipeline::Sink& sink, const std::string& incarnation,
                          const std::string& target) {
  const auto identity = By(Party::kSink, sink.Identity(target));
  const std::string key = KeyOf(run_, incarnation, target);
  if (!identity) {
    if (identity.error().code != Code::kNotFound) return identity.error();
    MUSTER_ASSIGN(const std::string before, Stored(key));
    // Nothing was written yet: the first write will report what is missing.
    if (before.empty()) return {};
    return Changed(target, identity.error().message);
  }
  if (identity->empty()) return {};
  MUSTER_ASSIGN(std::string before, Stored(key));
  if (before.empty()) {
    MUSTER_ASSIGN(before, FirstOf(key, target, *identity));
  }
  // For a PostgreSQL table an earlier version stored only the first part.
  if (before == *identity || identity->starts_with(before + "/")) return {};
  return Changed(target, "it was removed and created again, emptied or replaced");
}

Status TargetCheck::CheckAll(pipeline::Sink& sink, const std::string& incarnation) {
  checked_ = incarnation;
  for (store::RecordScan targets(store_, kTargetKind, run_ + "/" + incarnation + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, targets.Next());
    if (!record) return {};
    MUSTER_ASSIGN(const TargetBody body, TargetBody::FromJson(record->body));
    MUSTER_TRY(Check(sink, incarnation, body.target));
  }
}

// Empty: none stored.
Result<std::string> TargetCheck::Stored(const std::string& key) {
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  MUSTER_ASSIGN(const std::optional<store::Record> record, store_.Get(kTargetKind, key));
  if (!record) return std::string();
  MUSTER_ASSIGN(const TargetBody body, TargetBody::FromJson(record->body));
  return known_[key] = body.identity;
}

// Stores the identity unless another worker already has; returns the one that counts.
Result<std::string> TargetCheck::FirstOf(const std::string& key, const std::string& target,
                                         const std::string& identity) {
  const store::Change change = store::Change::Put(
      store::Record{.kind = kTargetKind,
                    .queue = run_,
                    .key = key,
                    .body = TargetBody{.target = target, .identity = identity}.ToJson()},
      store::Due::Never());
  MUSTER_TRY(store_.Write({&change, 1}));
  MUSTER_ASSIGN(std::string stored, Stored(key));
  if (stored.empty()) return Error{Code::kUnavailable, "record " + key + " is not there yet"};
  return stored;
}

}  // namespace muster::work
