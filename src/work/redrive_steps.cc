#include "work/redrive_steps.h"

#include "core/secrets.h"
#include "core/url.h"
#include "work/redrive_page.h"

namespace muster::work {
namespace {

// A step of a run that is in the store has the letters of all its starts.
constexpr int64_t kAnyStart = -1;

// The sink without what only says how it takes a number: letters of numbers that it has refused are
// redriven with another value of that.
std::string PlaceOf(const std::string& sink) { return WithoutParam(sink, "misfits"); }

}  // namespace

std::string RedriveSteps::SinkOf(const RedriveRequest& request) {
  return PlaceOf(AbsoluteUrl(Redact(request.sink)));
}

Status RedriveSteps::Find(bool records, const std::string& hash) {
  records_ = records;
  for (const auto& [group, letters] : log_.letters()) {
    MUSTER_TRY(Add(group, hash));
    RedriveStep& step = Of(group);
    if (IsFormer(step, group)) {
      const auto former = static_cast<int64_t>(letters.size());
      report_.former += former;
      report_.notes.push_back(FormerNote(group.run, former));
      continue;
    }
    for (const pipeline::LetterPlace& letter : letters) {
      if (!IsEarlier(step, group, letter)) left_[group].push_back(letter);
    }
  }
  for (auto& [key, step] : steps_) in_order_.push_back(&step);
  return {};
}

Status RedriveSteps::Add(const pipeline::LetterGroup& group, const std::string& hash) {
  if (looked_.insert(group.run).second) {
    RedriveStep step{.letters_of = group.run};
    MUSTER_TRY(FindRun(step, hash));
    const int64_t start = step.in_run ? kAnyStart : group.since_ms;
    steps_.emplace(std::pair(group.run, start), std::move(step));
  } else if (!steps_.contains({group.run, kAnyStart})) {
    steps_.try_emplace({group.run, group.since_ms}).first->second.letters_of = group.run;
  }
  RedriveFile::Entry*& beside = beside_[group];
  if (!records_) return {};
  MUSTER_ASSIGN(beside, file_.Find(group));
  RedriveStep& step = Of(group);
  if (beside != nullptr && !step.in_run) Record(*beside, step);
  return {};
}

// Makes it a step of the run if the store has that, with this sink.
Status RedriveSteps::FindRun(RedriveStep& step, const std::string& hash) {
  const std::string& run = step.letters_of;
  if (!request_.store || run == pipeline::kStandaloneRun || !CheckRunName(run)) return {};
  if (store_ == nullptr) {
    MUSTER_ASSIGN(store_, request_.store());
  }
  MUSTER_ASSIGN(const std::optional<store::Record> stored, store_->Get(kRunKind, run));
  if (!stored) {
    report_.notes.push_back("the store has no run '" + run + "': its counts stay as they are");
    return {};
  }
  MUSTER_ASSIGN(RunBody body, RunBody::FromJson(stored->body));
  if (body.removing) return CheckGoesOn(run, body);
  // Earlier versions recorded relative paths as they were given.
  const std::string place = PlaceOf(body.sink);
  if (place != SinkOf(request_) && place != PlaceOf(Redact(request_.sink))) {
    report_.notes.push_back("run '" + run + "' goes to " + body.sink +
                            ": its counts stay as they are");
    return {};
  }
  if (!hash.empty() && hash != body.transforms) {
    report_.notes.push_back(request_.transforms_file + " is not what run '" + run +
                            "' was begun with");
  }
  step.name = step.fence = run;
  step.store = store_;
  step.in_run = true;
  step.run = std::move(body);
  step.record.emplace(*store_, run);
  return step.record->Load();
}

void RedriveSteps::Record(RedriveFile::Entry& entry, RedriveStep& step) const {
  step.name = entry.name;
  step.fence = entry.fence;
  step.store = &entry.store;
  step.run = entry.run;
  // What another copy of the letters has written is written again on request only.
  step.run.adopts = request_.all;
  step.record.emplace(entry.settled);
}

RedriveStep& RedriveSteps::Of(const pipeline::LetterGroup& group) {
  const auto whole = steps_.find({group.run, kAnyStart});
  return whole != steps_.end() ? whole->second : steps_.at({group.run, group.since_ms});
}

Status RedriveSteps::RecordBeside(RedriveStep& step) {
  if (step.record || !records_) return {};
  for (const auto& [group, letters] : left_) {
    if (&Of(group) != &step) continue;
    MUSTER_ASSIGN(RedriveFile::Entry* const entry, file_.Make(group));
    Record(*entry, step);
    return {};
  }
  return {};
}

Status RedriveSteps::FindFollowers(RedriveStep& step) {
  if (!step.in_run) return {};
  std::set<std::string> items;
  for (const auto& [group, letters] : log_.letters()) {
    if (group.run != step.name || group.since_ms != 0) continue;
    for (const pipeline::LetterPlace& letter : letters) items.insert(letter.item);
  }
  for (const std::string& item : items) {
    MUSTER_ASSIGN(const auto stored, store_->Get(kWorkKind, ItemKey(step.name, item)));
    if (!stored) continue;
    const auto body = ItemBody::FromJson(stored->body);
    if (body && body->partition.follows) step.followers.insert(item);
  }
  return {};
}

bool RedriveSteps::IsFormer(const RedriveStep& step, const pipeline::LetterGroup& group) {
  return step.in_run && group.since_ms != 0 && group.since_ms < step.run.begun_ms;
}

bool RedriveSteps::IsSettled(const RedriveStep& step, const pipeline::LetterGroup& group,
                             const pipeline::LetterPlace& letter) const {
  if (step.record && step.record->Contains(letter.identity)) return true;
  // By a redrive that did not have the run's store.
  const RedriveFile::Entry* const beside = beside_.at(group);
  return step.in_run && beside != nullptr && beside->settled.Contains(letter.identity);
}

}  // namespace muster::work
