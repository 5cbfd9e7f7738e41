#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/events_follow.h"
#include "cli/exit_codes.h"
#include "core/json.h"
#include "events/events.h"
#include "muster/events.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1'000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct EventsOptions {
  std::string action;
  std::string log;
  std::string stream;
  int64_t after = 0;
  int64_t limit = 0;  // 0: all
  EventsFollowOptions follow;
};

// As many lines as fit in one append, in order.
class Batch {
 public:
  explicit Batch(events::EventLog& log) : log_(log) {}

  // `line` is its line number.
  Status Add(events::StreamAppend append, int64_t line) {
    const events::NewEvent& event = append.events.front();
    const size_t bytes = event.payload.size() + event.metadata.size();
    if (count_ == events::kMaxEventBatch || bytes_ + bytes > kMaxBytes) MUSTER_TRY(Flush());
    last_line_ = line;
    ++count_;
    bytes_ += bytes;
    if (Follows(append)) {
      appends_.back().events.push_back(std::move(append.events.front()));
    } else {
      appends_.push_back(std::move(append));
    }
    return {};
  }

  Status Flush() {
    auto appended = log_.Append(appends_);
    if (!appended && appended.error().code == Code::kConflict) {
      MUSTER_TRY(LeaveOutRepeats());
      appended = log_.Append(appends_);
    }
    if (!appended) return std::move(appended).error();
    for (const events::StreamAppend& append : appends_) appended_ += std::ssize(append.events);
    appends_.clear();
    count_ = 0;
    bytes_ = 0;
    flushed_to_ = last_line_;
    return {};
  }

  // The last line that is in the log, with all before it.
  int64_t flushed_to() const { return flushed_to_; }
  int64_t appended() const { return appended_; }
  int64_t repeated() const { return repeated_; }

 private:
  using Ids = std::map<int64_t, std::string>;  // by version

  static constexpr size_t kMaxBytes = 32 * 1024 * 1024;

  // Whether a line continues the previous one.
  bool Follows(const events::StreamAppend& append) const {
    if (appends_.empty() || appends_.back().stream != append.stream) return false;
    const events::StreamAppend& last = appends_.back();
    return append.expected == events::kAnyVersion ||
           (last.expected != events::kAnyVersion &&
            last.expected + std::ssize(last.events) == append.expected);
  }

  // An event with the same id at that version of its stream was appended before.
  Status LeaveOutRepeats() {
    std::map<std::string, std::pair<int64_t, int64_t>> ranges;  // of versions, the first excluded
    for (const events::StreamAppend& append : appends_) {
      if (append.expected == events::kAnyVersion) continue;
      const int64_t end = append.expected + std::ssize(append.events);
      auto& [first, last] = ranges.try_emplace(append.stream, append.expected, end).first->second;
      first = std::min(first, append.expected);
      last = std::max(last, end);
    }
    std::map<std::string, Ids> known;
    for (const auto& [stream, range] : ranges) {
      MUSTER_ASSIGN(known[stream], IdsOf(stream, range.first, range.second));
    }
    for (events::StreamAppend& append : appends_) LeaveOut(append, known[append.stream]);
    std::erase_if(appends_,
                  [](const events::StreamAppend& append) { return append.events.empty(); });
    return {};
  }

  Result<Ids> IdsOf(const std::string& stream, int64_t after, int64_t last) {
    Ids ids;
    while (after < last) {
      const int limit = static_cast<int>(std::min<int64_t>(last - after, kPage));
      MUSTER_ASSIGN(auto events, log_.ReadStream(stream, after, limit));
      if (events.empty()) break;
      after = events.back().version;
      for (events::Event& event : events) ids[event.version] = std::move(event.id);
    }
    return ids;
  }

  void LeaveOut(events::StreamAppend& append, const Ids& known) {
    if (append.expected == events::kAnyVersion) return;
    auto next = append.events.begin();
    for (; next != append.events.end() && !next->id.empty(); ++next) {
      const auto found = known.find(append.expected + 1);
      if (found == known.end() || found->second != next->id) break;
      ++append.expected;
      ++repeated_;
    }
    append.events.erase(append.events.begin(), next);
  }

  events::EventLog& log_;
  std::vector<events::StreamAppend> appends_;
  int count_ = 0;
  size_t bytes_ = 0;
  int64_t appended_ = 0;
  int64_t repeated_ = 0;
  int64_t last_line_ = 0;
  int64_t flushed_to_ = 0;
};

Status AppendLines(std::istream& in, Batch& batch) {
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.empty()) continue;
    const std::string origin = "line " + std::to_string(number);
    MUSTER_ASSIGN(auto append, events::AppendFromJson(line, origin));
    if (Status fits = events::CheckAppends({&append, 1}); !fits) return fits.error().Within(origin);
    MUSTER_TRY(batch.Add(std::move(append), number));
  }
  MUSTER_TRY(batch.Flush());
  // A C++ stream does not distinguish a read error from the end.
  if (std::ferror(stdin) == 0) return {};
  return Error{Code::kUnavailable, "the input cannot be read to its end",
               "check where it comes from"};
}

// Says where to resume: earlier lines would be appended twice.
Error Interrupted(Error error, const Batch& batch) {
  if (batch.flushed_to() == 0) return error;
  const std::string next = std::to_string(batch.flushed_to() + 1);
  error.message += "; lines 1 to " + std::to_string(batch.flushed_to()) + " are in the log";
  if (!error.hint.empty()) error.hint += "; ";
  error.hint +=
      "continue with line " + next + ": tail -n +" + next + " FILE | muster events append";
  return error;
}

Result<int> Append(events::EventLog& log, Context& context) {
  Batch batch(log);
  if (Status done = AppendLines(std::cin, batch); !done) return Interrupted(done.error(), batch);
  if (context.json) {
    context.out << ToJsonText(Json{{"appended", batch.appended()}, {"repeated", batch.repeated()}})
                << '\n';
  } else {
    context.out << batch.appended() << " events appended";
    if (batch.repeated() > 0) context.out << ", " << batch.repeated() << " were there already";
    context.out << '\n';
  }
  return kDone;
}

Result<int> Read(events::EventLog& log, const EventsOptions& options, Context& context) {
  int64_t left = options.limit == 0 ? INT64_MAX : options.limit;
  for (int64_t after = options.after; left > 0;) {
    const int limit = static_cast<int>(std::min<int64_t>(left, kPage));
    std::vector<events::Event> events;
    int64_t next = after;
    if (options.stream.empty()) {
      MUSTER_ASSIGN(events::EventPage page, log.ReadAll(after, limit));
      events = std::move(page.events);
      next = page.read_to;
    } else {
      MUSTER_ASSIGN(events, log.ReadStream(options.stream, after, limit));
      if (!events.empty()) next = events.back().version;
    }
    for (const events::Event& event : events) context.out << events::EventToJson(event) << '\n';
    left -= static_cast<int64_t>(events.size());
    if (next == after) break;
    after = next;
  }
  return kDone;
}

void AddFollowOptions(Command& command, EventsFollowOptions& follow) {
  command.AddOption("--from", follow.source, "The PostgreSQL database whose changes become events")
      .TypeName("URL");
  command.AddOption("--table", follow.tables, "A table to follow; can be repeated")
      .TypeName("NAME")
      .OneValuePerUse();
  command
      .AddOption("--outbox", follow.outboxes,
                 "A table of events to follow, TABLE?id=COLUMN&...; can be repeated")
      .TypeName("TABLE")
      .OneValuePerUse();
  command.AddOption("--name", follow.name, "Names the replication slot, muster_NAME")
      .TypeName("NAME");
  command.AddFlag("--once", follow.once, "End when everything committed so far is in the log");
}

}  // namespace

void AddEventsCommand(Command& app, Context& context) {
  Command command = app.AddCommand(
      "events", "Append to an event log, read it, or fill it with a database's changes");
  command.Group("Follow changes");
  auto options = std::make_shared<EventsOptions>();
  command.AddOption("ACTION", options->action, "What to do; append reads JSON lines from stdin")
      .Required()
      .OneOf({"append", "read", "follow", "unfollow"});
  command.AddOption("LOG", options->log, "The log's URL, as for a store").Required();
  command.AddOption("--stream", options->stream, "Only this stream; for read").TypeName("NAME");
  command
      .AddOption("--after", options->after,
                 "Start after this position, or version of a stream; for read")
      .TypeName("N")
      .NonNegative();
  command.AddOption("--limit", options->limit, "Maximum number, all by default; for read")
      .TypeName("N")
      .Positive();
  AddFollowOptions(command, options->follow);
  command.Footer(
      "  muster events append sqlite:shop.db < events.ndjson\n"
      "  muster events read sqlite:shop.db --stream order-1\n"
      "  muster events read sqlite:shop.db | muster events append sqlite:copy.db\n"
      "  muster events follow sqlite:shop.db --from postgresql://me@db/app --table orders");
  command.Action(context, [command, options, &context]() -> Result<int> {
    MUSTER_TRY(command.CheckUse(options->action, {{"--stream", {"read"}},
                                                  {"--after", {"read"}},
                                                  {"--limit", {"read"}},
                                                  {"--from", {"follow", "unfollow"}},
                                                  {"--table", {"follow"}},
                                                  {"--outbox", {"follow"}},
                                                  {"--name", {"follow", "unfollow"}},
                                                  {"--once", {"follow"}}}));
    const std::string& action = options->action;
    const bool follows = action == "follow" || action == "unfollow";
    if (follows && options->follow.source.empty()) {
      return Error{Code::kInvalid, action + " needs --from",
                   "name the database whose changes become events"};
    }
    if (follows && options->log.starts_with("memory:")) {
      return Error{Code::kInvalid, "a log in memory is gone when this command ends",
                   "name a SQLite file or a PostgreSQL database"};
    }
    // A misspelt name must not pass as an empty log.
    const bool creates = action == "append" || action == "follow";
    MUSTER_ASSIGN(const auto log,
                  events::OpenEventLog(options->log, {.create = creates}, context.env));
    if (action == "append") return Append(*log, context);
    if (action == "follow") return FollowIntoLog(*log, options->follow, context);
    if (action == "unfollow") return UnfollowIntoLog(*log, options->follow, context);
    return Read(*log, *options, context);
  });
}

}  // namespace muster::cli
