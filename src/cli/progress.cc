#include "cli/progress.h"

#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"
#include "core/json.h"
#include "core/mutex.h"
#include "core/secrets.h"

namespace muster::cli {
namespace {

using std::chrono::milliseconds;

milliseconds IntervalOf(ProgressMode mode) {
  switch (mode) {
    case ProgressMode::kTty:
      return milliseconds(100);
    case ProgressMode::kPlain:
      return milliseconds(5000);
    default:
      return milliseconds(1000);
  }
}

std::string FormatRate(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, rate < 10 ? "%.1f/s" : "%.0f/s", rate);
  return text;
}

}  // namespace

std::string FormatSeconds(uint64_t seconds) {
  char text[48];
  auto of = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%llus", of(seconds));
  } else if (seconds < 3600) {
    std::snprintf(text, sizeof text, "%llum%02llus", of(seconds / 60), of(seconds % 60));
  } else {
    std::snprintf(text, sizeof text, "%lluh%02llum", of(seconds / 3600), of(seconds / 60 % 60));
  }
  return text;
}

Result<ProgressMode> ParseProgressMode(std::string_view name, bool stderr_is_terminal) {
  if (name == "auto") return stderr_is_terminal ? ProgressMode::kTty : ProgressMode::kPlain;
  if (name == "tty") return ProgressMode::kTty;
  if (name == "plain") return ProgressMode::kPlain;
  if (name == "json") return ProgressMode::kJson;
  if (name == "none") return ProgressMode::kNone;
  return Error{Code::kInvalid, "unknown progress mode", "use auto, tty, plain, json or none"};
}

Progress::Progress(ProgressMode mode, std::ostream& out, Env& env, std::string_view label,
                   uint64_t total, std::function<int()> width)
    : mode_(mode),
      out_(out),
      env_(env),
      label_(Printable(Redact(label))),
      width_(std::move(width)),
      total_(total),
      started_(env.MonoNow()),
      next_(started_ + (mode == ProgressMode::kTty ? milliseconds(0) : IntervalOf(mode))) {}

Progress::~Progress() { Finish(); }

void Progress::SetEarlier(uint64_t done) {
  const MutexLock lock(mutex_);
  earlier_ = done;
}

void Progress::Update(uint64_t done) {
  const MutexLock lock(mutex_);
  done_ = done;
  if (env_.MonoNow() >= next_) Show();
}

void Progress::Update(uint64_t done, uint64_t total) {
  {
    const MutexLock lock(mutex_);
    total_ = total;
  }
  Update(done);
}

void Progress::Note(std::string_view note) {
  const MutexLock lock(mutex_);
  note_ = Printable(Redact(note));
}

void Progress::Estimate(bool shown) {
  const MutexLock lock(mutex_);
  estimates_ = shown;
}

void Progress::Say(std::string_view event) {
  const MutexLock lock(mutex_);
  if (finished_ || mode_ == ProgressMode::kNone) return;
  const std::string text = Printable(Redact(event));
  if (mode_ == ProgressMode::kJson) {
    out_ << ToJsonText(Json{{"event", text}}) << '\n' << std::flush;
  } else {
    out_ << (mode_ == ProgressMode::kTty ? "\r\x1b[K" : "") << text << '\n' << std::flush;
  }
  if (mode_ == ProgressMode::kTty) Show();
}

void Progress::Finish() {
  const MutexLock lock(mutex_);
  if (finished_) return;
  Show();
  finished_ = true;
  if (mode_ == ProgressMode::kTty) out_ << '\n' << std::flush;
}

void Progress::Show() {
  if (finished_ || mode_ == ProgressMode::kNone) return;
  next_ = env_.MonoNow() + IntervalOf(mode_);
  double rate = Rate();
  switch (mode_) {
    // Returns to the line's start and clears the rest of a longer line.
    case ProgressMode::kTty:
      out_ << '\r' << BarLine(rate) << "\x1b[K";
      break;
    case ProgressMode::kPlain:
      out_ << PlainLine(rate) << '\n';
      break;
    case ProgressMode::kJson:
      out_ << JsonLine(rate) << '\n';
      break;
    case ProgressMode::kNone:
      break;
  }
  out_ << std::flush;
}

double Progress::Rate() const {
  double seconds = std::chrono::duration<double>(env_.MonoNow() - started_).count();
  // Less than before: it was started over by another process.
  const uint64_t done = done_ > earlier_ ? done_ - earlier_ : 0;
  return seconds > 0 ? static_cast<double>(done) / seconds : 0;
}

std::string Progress::PlainLine(double rate) const {
  std::string line = label_ + ": ";
  const std::string note = note_.empty() ? "" : "; " + note_;
  if (total_ == 0) return line + std::to_string(done_) + ", " + FormatRate(rate) + note;
  uint64_t done = std::min(done_, total_);
  line += std::to_string(done_) + " of " + std::to_string(total_) + " (" +
          std::to_string(done * 100 / total_) + "%), " + FormatRate(rate);
  if (done < total_ && rate > 0 && estimates_) {
    line += ", " + FormatSeconds(static_cast<uint64_t>(static_cast<double>(total_ - done) / rate)) +
            " left";
  }
  return line + note;
}

std::string Progress::BarLine(double rate) const {
  std::string text = PlainLine(rate);
  // The last column stays free: writing there would wrap on some terminals.
  const auto columns = static_cast<size_t>(std::max(width_() - 1, 1));
  const size_t used = DisplayWidth(text);
  constexpr size_t kShortestBar = 10;
  if (total_ > 0 && used + kShortestBar + 3 <= columns) {
    const size_t bar = std::min<size_t>(columns - used - 3, 40);
    const auto filled = static_cast<size_t>(static_cast<double>(std::min(done_, total_)) /
                                            static_cast<double>(total_) * static_cast<double>(bar));
    return "[" + std::string(filled, '#') + std::string(bar - filled, '.') + "] " + text;
  }
  return CutTo(columns, text);
}

std::string Progress::JsonLine(double rate) const {
  Json state{{"label", label_}, {"done", done_}};
  if (total_ > 0) state["total"] = total_;
  state["per_second"] = rate;
  if (!note_.empty()) state["note"] = note_;
  return ToJsonText(Json{{"progress", state}});
}

}  // namespace muster::cli
