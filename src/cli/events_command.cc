#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "events/event_json.h"
#include "muster/events.h"

namespace muster::cli {
namespace {

struct EventsOptions {
  std::string action;
  std::string log;
  std::string stream;
  int64_t after = 0;
  int64_t limit = 0;  // 0: all there is
};

// As many lines as fit into one append, those of one stream together.
class Batch {
 public:
  explicit Batch(EventLog& log) : log_(log) {}

  Status Add(StreamAppend append) {
    auto found = index_.find(append.stream);
    // A version that is expected has to be true when its line is reached.
    const bool apart = found != index_.end() && append.expected != kAnyVersion;
    if (apart || count_ == kMaxEventBatch) {
      MUSTER_TRY(Flush());
      found = index_.end();
    }
    ++count_;
    if (found == index_.end()) {
      index_[append.stream] = appends_.size();
      appends_.push_back(std::move(append));
    } else {
      appends_[found->second].events.push_back(std::move(append.events.front()));
    }
    return {};
  }

  Status Flush() {
    if (count_ == 0) return {};
    MUSTER_TRY(log_.Append(appends_));
    total_ += count_;
    appends_.clear();
    index_.clear();
    count_ = 0;
    return {};
  }

  int64_t total() const { return total_; }

 private:
  EventLog& log_;
  std::vector<StreamAppend> appends_;
  std::map<std::string, size_t> index_;
  int count_ = 0;
  int64_t total_ = 0;
};

Result<int> Append(EventLog& log, Context& context) {
  Batch batch(log);
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    MUSTER_ASSIGN(auto append, AppendFromJson(line, "line " + std::to_string(number)));
    MUSTER_TRY(batch.Add(std::move(append)));
  }
  MUSTER_TRY(batch.Flush());
  if (context.json) {
    context.out << ToJsonText(Json{{"appended", batch.total()}}) << '\n';
  } else {
    context.out << batch.total() << " events appended\n";
  }
  return kDone;
}

Result<int> Read(EventLog& log, const EventsOptions& options, Context& context) {
  constexpr int kPage = 1'000;
  int64_t left = options.limit == 0 ? INT64_MAX : options.limit;
  for (int64_t after = options.after; left > 0;) {
    const int limit = static_cast<int>(std::min<int64_t>(left, kPage));
    std::vector<Event> events;
    int64_t next = after;
    if (options.stream.empty()) {
      MUSTER_ASSIGN(EventPage page, log.ReadAll(after, limit));
      events = std::move(page.events);
      next = page.read_to;
    } else {
      MUSTER_ASSIGN(events, log.ReadStream(options.stream, after, limit));
      if (!events.empty()) next = events.back().version;
    }
    for (const Event& event : events) context.out << EventToJson(event) << '\n';
    left -= static_cast<int64_t>(events.size());
    if (next == after) break;
    after = next;
  }
  return kDone;
}

}  // namespace

void AddEventsCommand(Command& app, Context& context) {
  Command command = app.AddCommand("events", "Append to an event log, or read it");
  command.Group("Keep data moving");
  auto options = std::make_shared<EventsOptions>();
  command.AddOption("ACTION", options->action, "append reads lines of JSON from stdin")
      .Required()
      .OneOf({"append", "read"});
  command.AddOption("LOG", options->log, "The log's URL, as of a store").Required();
  command.AddOption("--stream", options->stream, "Only this one; for read").TypeName("NAME");
  command.AddOption("--after", options->after, "Start after this position, or version of a stream")
      .TypeName("N")
      .NonNegative();
  command.AddOption("--limit", options->limit, "At most so many; all by default")
      .TypeName("N")
      .Positive();
  command.Footer(
      "  muster events append sqlite:shop.db < events.ndjson\n"
      "  muster events read sqlite:shop.db --stream order-1");
  command.Action(context, [options, &context]() -> Result<int> {
    MUSTER_ASSIGN(const auto log, OpenEventLog(options->log, context.env));
    if (options->action == "append") return Append(*log, context);
    return Read(*log, *options, context);
  });
}

}  // namespace muster::cli
