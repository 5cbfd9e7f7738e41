#include "change/follow.h"

#include <algorithm>
#include <optional>

#include "change/follow_checkpoint.h"
#include "change/follow_source.h"
#include "change/row_events.h"
#include "core/backoff.h"

namespace muster::change {
namespace {

using namespace std::chrono_literals;

constexpr size_t kFullBatch = 1'000;                     // events, at the end of a transaction
constexpr size_t kLargestBatch = 5'000;                  // within one; a change has two at most
constexpr size_t kLargestBatchBytes = 16 * 1024 * 1024;  // the same, in bytes
constexpr milliseconds kLongestBatch = 200ms;
constexpr milliseconds kConfirmEvery = 10s;  // the server gives up after a minute by default
// Appends a checkpoint even without events, so that the server can remove its log while only other
// tables change.
constexpr sql::PgLsn kIdleCheckpoint = 16 * 1024 * 1024;

size_t BytesOf(const events::StreamAppend& append) {
  size_t bytes = 0;
  for (const events::NewEvent& event : append.events) {
    bytes += event.payload.size() + event.metadata.size();
  }
  return bytes;
}

// Reads the stream of one connection and appends what it contains.
class FollowSession {
 public:
  FollowSession(FollowSource source, FollowLog& log, RowEvents& rows, FollowCheckpoint checkpoint,
                sql::PgReplication stream, Env& env)
      : source_(std::move(source)),
        log_(log),
        rows_(rows),
        stored_(checkpoint),
        reached_(std::move(checkpoint)),
        stream_(std::move(stream)),
        env_(env),
        confirmed_at_(env.MonoNow()) {}

  // Reads for as long as a batch may take, and appends what is due. Returns the number of events
  // appended.
  Result<int64_t> Step() {
    auto appended = ReadAndAppend();
    if (appended || !IsTransient(appended.error().code)) return appended;
    // The server also ends the stream for permanent reasons, such as a dropped publication.
    const Status owned = source_.CheckOwned(stored_);
    if (!owned && !IsTransient(owned.error().code)) return owned.error();
    return appended;
  }

  // Whether everything up to the mark, or to the position, has been read and appended.
  bool HasReached(const std::optional<std::string>& mark, sql::PgLsn position) const {
    if (!batch_.empty() || transaction_) return false;
    return mark ? marks_.contains(*mark) : std::max(reached_.end, idle_) >= position;
  }

  // Stores how far the source has been read, even with nothing to append.
  Status Finish() {
    if (std::max(idle_, reached_.end) <= stored_.end) return {};
    MUSTER_TRY(Append());
    return {};
  }

  const FollowCheckpoint& stored() const { return stored_; }

 private:
  struct Transaction {
    ChangePlace place;
    int64_t skipped = 0;    // this many changes are in the log already
    bool is_known = false;  // all of them
  };

  Result<int64_t> ReadAndAppend() {
    const MonoTime until = batch_began_.value_or(env_.MonoNow()) + kLongestBatch;
    MUSTER_ASSIGN(const auto frame, stream_.Next(until));
    if (frame && frame->message.empty()) {
      MUSTER_TRY(Idle(*frame));
    } else if (frame) {
      MUSTER_TRY(Take(frame->message));
    }
    int64_t appended = 0;
    if (IsDue(!frame)) {
      MUSTER_ASSIGN(appended, Append());
    }
    if (env_.MonoNow() - confirmed_at_ >= kConfirmEvery) {
      MUSTER_TRY(source_.CheckOwned(stored_));
      MUSTER_TRY(Confirm());
    }
    return appended;
  }

  Status Take(std::string_view message) {
    MUSTER_ASSIGN(const sql::PgMessage decoded, sql::DecodePgOutput(message));
    if (const auto* begin = std::get_if<sql::PgBegin>(&decoded)) return Begin(*begin);
    if (const auto* commit = std::get_if<sql::PgCommit>(&decoded)) return Commit(*commit);
    if (const auto* relation = std::get_if<sql::PgRelation>(&decoded)) {
      MUSTER_ASSIGN(const auto key, source_.KeyOf(relation->oid));
      return rows_.Learn(*relation, key);
    }
    if (const auto* mark = std::get_if<sql::PgMark>(&decoded)) {
      if (mark->prefix == "muster") marks_.emplace(mark->content);
      return {};
    }
    if (const auto* change = std::get_if<sql::PgChange>(&decoded)) return Change(*change);
    if (const auto* truncate = std::get_if<sql::PgTruncate>(&decoded)) return Change(*truncate);
    return {};
  }

  Status Begin(const sql::PgBegin& begin) {
    if (transaction_) return OutOfOrder("a transaction inside another");
    transaction_ =
        Transaction{.place = {.commit = begin.commit, .xid = begin.xid, .time = begin.time},
                    .skipped = begin.commit == reached_.commit ? reached_.changes : 0,
                    .is_known = begin.commit < reached_.end};
    return {};
  }

  Status Commit(const sql::PgCommit& commit) {
    if (!transaction_) return OutOfOrder("a commit without a transaction");
    if (!transaction_->is_known) {
      reached_.end = commit.end;
      reached_.commit = 0;
      reached_.changes = 0;
    }
    transaction_.reset();
    return {};
  }

  template <class Message>
  Status Change(const Message& change) {
    if (!transaction_) return OutOfOrder("a change without a transaction");
    ChangePlace& place = transaction_->place;
    ++place.number;
    if (transaction_->is_known || place.number <= transaction_->skipped) return {};
    const size_t before = batch_.size();
    MUSTER_TRY(rows_.Add(change, place, batch_));
    for (size_t i = before; i < batch_.size(); ++i) bytes_ += BytesOf(batch_[i]);
    if (!batch_.empty() && !batch_began_) batch_began_ = env_.MonoNow();
    reached_.commit = place.commit;
    reached_.changes = place.number;
    return {};
  }

  static Error OutOfOrder(const std::string& what) {
    return Error{Code::kCorrupt, "the change stream is out of order: " + what};
  }

  Status Idle(const sql::PgFrame& frame) {
    if (!transaction_) idle_ = std::max(idle_, frame.sent);
    if (!frame.wants_reply) return {};
    if (transaction_ || !batch_.empty() || idle_ <= stored_.end) return Confirm();
    // A server that shuts down waits until everything it has sent is confirmed.
    MUSTER_TRY(Append());
    return {};
  }

  // Keeps the events of a transaction together, unless there are too many.
  bool IsDue(bool nothing_came) const {
    if (batch_.size() >= kLargestBatch || bytes_ >= kLargestBatchBytes) return true;
    if (transaction_) return false;
    if (batch_.empty()) {
      // The transaction ends whose last part was just appended, or many other events wait.
      return (stored_.commit != 0 && reached_.end > stored_.end) ||
             std::max(idle_, reached_.end) > stored_.end + kIdleCheckpoint;
    }
    return batch_.size() >= kFullBatch || nothing_came ||
           env_.MonoNow() - *batch_began_ >= kLongestBatch;
  }

  Result<int64_t> Append() {
    if (!transaction_ && batch_.empty()) reached_.end = std::max(reached_.end, idle_);
    const int64_t events = std::ssize(batch_);
    MUSTER_TRY(log_.Write(reached_, std::move(batch_)));
    batch_.clear();
    bytes_ = 0;
    batch_began_.reset();
    stored_ = reached_;
    MUSTER_TRY(Confirm());
    return events;
  }

  // Confirms only what is in the log, together with its checkpoint.
  Status Confirm() {
    confirmed_at_ = env_.MonoNow();
    return stream_.Confirm(stored_.end);
  }

  FollowSource source_;
  FollowLog& log_;
  RowEvents& rows_;
  FollowCheckpoint stored_;
  FollowCheckpoint reached_;  // including the batch
  sql::PgReplication stream_;
  Env& env_;
  MonoTime confirmed_at_;
  std::optional<Transaction> transaction_;
  std::vector<events::StreamAppend> batch_;
  size_t bytes_ = 0;
  std::optional<MonoTime> batch_began_;
  sql::PgLsn idle_ = 0;  // the server has nothing for us before this position
  std::set<std::string, std::less<>> marks_;
};

class Follower {
 public:
  Follower(events::EventLog& log, const FollowOptions& options, FollowObserver& observer, Env& env,
           std::stop_token stop)
      : options_(options),
        observer_(observer),
        env_(env),
        stop_(std::move(stop)),
        log_(log, options.name) {}

  Result<FollowReport> Run() {
    Backoff backoff(env_, stop_, {.first = 500ms, .longest = 15s});
    bool is_done = false;
    while (!is_done && !stop_.stop_requested()) {
      const int64_t before = report_.events;
      const auto ended = Session();
      if (ended) {
        is_done = *ended;
        continue;
      }
      const Code code = ended.error().code;
      if (stop_.stop_requested() && code == Code::kCancelled) break;
      // kConflict: another process follows, or has just followed.
      if (!IsTransient(code) && code != Code::kConflict) return ended.error();
      if (report_.events > before) backoff.Reset();
      observer_.Waits(ended.error());
      if (!backoff.Pause()) break;
    }
    if (options_.once && !is_done) {
      return Error{Code::kCancelled, "stopped before everything was in the log"};
    }
    return report_;
  }

 private:
  // Until a stop is requested, or everything requested is in the log: then true.
  Result<bool> Session() {
    MUSTER_ASSIGN(FollowSource source, FollowSource::Open(options_));
    MUSTER_TRY(source.Check());
    MUSTER_ASSIGN(const auto found, log_.Read());
    FollowCheckpoint checkpoint = found.value_or(FollowCheckpoint{});
    const bool begun = found && found->phase != FollowCheckpoint::Phase::kEnded;
    if (!begun) MUSTER_TRY(Begin(source, checkpoint));
    MUSTER_TRY(source.CheckOwned(checkpoint));
    MUSTER_ASSIGN(auto tables, source.Publish(checkpoint.id));
    const bool is_new = tables != checkpoint.tables;
    checkpoint.tables = std::move(tables);
    if (checkpoint.phase == FollowCheckpoint::Phase::kCreating) {
      MUSTER_TRY(CreateSlot(source, checkpoint));
    } else if (is_new) {
      MUSTER_TRY(log_.Write(checkpoint, {}));
    }
    MUSTER_TRY(source.CheckContinues(checkpoint));
    MUSTER_ASSIGN(sql::PgReplication stream, source.Stream(checkpoint));
    std::optional<std::string> mark;
    sql::PgLsn position = 0;
    if (options_.once) {
      MUSTER_ASSIGN(mark, source.Mark(env_));
      MUSTER_ASSIGN(position, source.Position());
    }
    report_.position = sql::PgLsnText(checkpoint.end);
    observer_.Started(report_.position);
    RowEvents rows(options_.name, options_.outboxes);
    FollowSession session(std::move(source), log_, rows, checkpoint, std::move(stream), env_);
    const int64_t rejected = report_.rejected;
    while (!stop_.stop_requested()) {
      MUSTER_ASSIGN(const int64_t appended, session.Step());
      if (appended > 0) {
        report_.events += appended;
        report_.rejected = rejected + rows.rejected();
        report_.position = sql::PgLsnText(session.stored().end);
        observer_.Advanced(report_);
      }
      if (options_.once && session.HasReached(mark, position)) {
        MUSTER_TRY(session.Finish());
        report_.position = sql::PgLsnText(session.stored().end);
        return true;
      }
    }
    return false;
  }

  // Announces a slot before it is created: one found later under that name is ours only if this is
  // in the log.
  Status Begin(FollowSource& source, FollowCheckpoint& checkpoint) {
    MUSTER_ASSIGN(const auto slot, source.SlotPosition());
    if (slot) {
      return Error{Code::kIncompatible,
                   "slot 'muster_" + options_.name + "' exists, and this log knows nothing of it",
                   "use another --name; or, if nothing else reads that slot, 'muster events "
                   "unfollow' removes it"};
    }
    checkpoint = {.id = env_.NewId()};
    return log_.Write(checkpoint, {});
  }

  Status CreateSlot(FollowSource& source, FollowCheckpoint& checkpoint) {
    MUSTER_ASSIGN(const auto existing, source.SlotPosition());
    if (existing) {
      checkpoint.end = *existing;
    } else {
      MUSTER_ASSIGN(checkpoint.end, source.CreateSlot());
    }
    MUSTER_ASSIGN(checkpoint.system, source.System());
    checkpoint.phase = FollowCheckpoint::Phase::kFollowing;
    return log_.Write(checkpoint, {});
  }

  const FollowOptions options_;
  FollowObserver& observer_;
  Env& env_;
  const std::stop_token stop_;
  FollowLog log_;
  FollowReport report_;
};

}  // namespace

Result<FollowReport> Follow(events::EventLog& log, const FollowOptions& options,
                            FollowObserver& observer, Env& env, std::stop_token stop) {
  return Follower(log, options, observer, env, std::move(stop)).Run();
}

Result<bool> Unfollow(events::EventLog& log, const FollowOptions& options, Env& env) {
  MUSTER_ASSIGN(FollowSource source, FollowSource::Open(options));
  FollowLog checkpoints(log, options.name);
  MUSTER_ASSIGN(auto last, checkpoints.Read());
  if (!last || last->phase == FollowCheckpoint::Phase::kEnded) {
    MUSTER_ASSIGN(const bool exists, source.Exists());
    if (!exists) return false;
    const std::string name = "muster_" + options.name;
    return Error{Code::kIncompatible,
                 "slot or publication '" + name + "' exists, and this log knows nothing of it",
                 "name the log that it fills; if that is gone: SELECT pg_drop_replication_slot('" +
                     name + "'); DROP PUBLICATION " + name + ", " + name + "_outbox"};
  }
  last->tables.clear();  // they may be gone
  MUSTER_TRY(source.CheckOwned(*last));
  MUSTER_TRY(source.Remove(env));
  last->phase = FollowCheckpoint::Phase::kEnded;
  MUSTER_TRY(checkpoints.Write(*last, {}));
  return true;
}

}  // namespace muster::change
