#include "cli/events_follow.h"

#include "change/change.h"
#include "cli/exit_codes.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/interrupt.h"
#include "core/json.h"

namespace muster::cli {
namespace {

class Shown final : public change::FollowObserver {
 public:
  explicit Shown(Progress& progress) : progress_(progress) {}

  void Started(const std::string& position) override {
    progress_.Note("");
    progress_.Say("follows the source from " + position + " on");
  }
  void Advanced(const change::FollowReport& report) override {
    progress_.Update(static_cast<uint64_t>(report.events));
  }
  void Waits(const Error& why) override {
    const bool stands_by = why.code == Code::kConflict;
    progress_.Note(stands_by ? "stands by" : "waits");
    progress_.Say((stands_by ? "stands by while another process follows: " : "waits: ") +
                  why.ToString());
  }

 private:
  Progress& progress_;
};

Result<change::FollowOptions> Parse(const EventsFollowOptions& given) {
  change::FollowOptions options{.source = given.source,
                                .name = given.name,
                                .tables = given.tables,
                                .outboxes = {},
                                .once = given.once};
  for (const std::string& text : given.outboxes) {
    MUSTER_ASSIGN(change::Outbox outbox, change::ParseOutbox(text));
    options.outboxes.push_back(std::move(outbox));
  }
  return options;
}

}  // namespace

Result<int> FollowIntoLog(events::EventLog& log, const EventsFollowOptions& given,
                          Context& context) {
  MUSTER_ASSIGN(const change::FollowOptions options, Parse(given));
  StopOnSignals signals("");
  const InterruptScope scope(signals.Token());
  Progress progress(context.progress, context.err, context.env, "follow " + options.name, 0,
                    [] { return TerminalWidth(2); });
  Shown shown(progress);
  const auto report = change::Follow(log, options, shown, context.env, signals.Token());
  progress.Finish();
  MUSTER_TRY(report);
  if (context.json) {
    context.out << ToJsonText(Json{{"events", report->events},
                                   {"rejected", report->rejected},
                                   {"position", report->position}})
                << '\n';
  } else {
    context.out << report->events << " events appended, up to " << report->position << '\n';
    if (report->rejected > 0) {
      context.out << report->rejected << " changes could not be events: 'muster events read LOG "
                  << "--stream $follow/" << options.name << "/rejected' shows why\n";
    }
  }
  return report->rejected > 0 ? kDoneWithRejects : kDone;
}

Result<int> UnfollowIntoLog(events::EventLog& log, const EventsFollowOptions& given,
                            Context& context) {
  MUSTER_ASSIGN(const change::FollowOptions options, Parse(given));
  MUSTER_ASSIGN(const bool any, change::Unfollow(log, options, context.env));
  const std::string slot = "slot muster_" + options.name;
  const std::string done = any ? slot + " and its publications are removed"
                               : "no " + slot + ", and no publication of that name";
  context.out << (context.json ? ToJsonText(Json{{"done", done}}) : done) << '\n';
  return any ? kDone : kNothingToDo;
}

}  // namespace muster::cli
