#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/store.h"
#include "muster/work.h"
#include "pipeline/pipeline.h"
#include "work/records.h"
#include "work/redrive_file.h"
#include "work/redrive_lease.h"
#include "work/settled_letters.h"

namespace muster::work {

// The redrive of the letters of one run, or of one start of a run that is not in the store. Without
// a record, nothing keeps a second redrive from writing the same letters: only into files, which
// refuse it themselves.
struct RedriveStep {
  std::string letters_of = {};    // the run that the letters name
  std::string name = {};          // of the records
  std::string fence = {};         // the run's name in the sink
  store::Store* store = nullptr;  // that has them
  bool in_run = false;            // that is the run's store, and its counts change
  RunBody run = {};               // empty: there are no records
  std::optional<SettledLetters> record = {};
  std::set<std::string> followers = {};  // of the letters' items
  std::optional<RedriveLease> lease = {};
  bool replaces_all = false;  // the records of earlier redrives are lost
  bool changed = false;       // letters were recorded

  RedriveLease* lease_or_null() { return lease ? &*lease : nullptr; }
};

// Where the letters of a file are recorded, and which of them are settled. Used by one thread;
// `request`, `log`, `env` and `report` must outlive it.
class RedriveSteps {
 public:
  RedriveSteps(const RedriveRequest& request, const pipeline::DeadLetterLog& log, Env& env,
               RedriveReport& report)
      : request_(request),
        log_(log),
        report_(report),
        file_(request.letters, SinkOf(request), env) {}

  // Looks everything up. `records`: unless the sink refuses a second redrive by itself. `hash` is
  // of the transforms; empty: none.
  Status Find(bool records, const std::string& hash);

  const std::vector<RedriveStep*>& all() const { return in_order_; }
  RedriveStep& Of(const pipeline::LetterGroup& group);
  // Letters still to be redriven, before the leases are taken.
  const std::map<pipeline::LetterGroup, std::vector<pipeline::LetterPlace>>& left() const {
    return left_;
  }
  const std::string& file() const { return file_.path(); }

  // Records letters of runs that are not in the store beside them, once there are some to write.
  Status RecordBeside(RedriveStep& step);
  // Finds the items that followed others, for letters that do not say so themselves.
  Status FindFollowers(RedriveStep& step);

  // Whether these letters are of an earlier start of their run.
  static bool IsFormer(const RedriveStep& step, const pipeline::LetterGroup& group);
  // Whether it is settled, and whether to leave it out for that.
  bool IsSettled(const RedriveStep& step, const pipeline::LetterGroup& group,
                 const pipeline::LetterPlace& letter) const;
  bool IsEarlier(const RedriveStep& step, const pipeline::LetterGroup& group,
                 const pipeline::LetterPlace& letter) const {
    return !request_.all && IsSettled(step, group, letter);
  }

 private:
  static std::string SinkOf(const RedriveRequest& request);
  Status Add(const pipeline::LetterGroup& group, const std::string& hash);
  Status FindRun(RedriveStep& step, const std::string& hash);
  void Record(RedriveFile::Entry& entry, RedriveStep& step) const;

  const RedriveRequest& request_;
  const pipeline::DeadLetterLog& log_;
  RedriveReport& report_;
  RedriveFile file_;
  store::Store* store_ = nullptr;  // of runs, once it is open
  bool records_ = false;
  std::map<std::pair<std::string, int64_t>, RedriveStep> steps_;  // by run and start
  std::vector<RedriveStep*> in_order_;
  std::set<std::string> looked_;  // runs that were looked for in the store
  std::map<pipeline::LetterGroup, RedriveFile::Entry*> beside_;  // null: none yet
  std::map<pipeline::LetterGroup, std::vector<pipeline::LetterPlace>> left_;
};

}  // namespace muster::work
