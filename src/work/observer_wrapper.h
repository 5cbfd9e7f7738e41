#pragma once

#include <string>

#include "muster/work.h"

namespace muster::work {

// Forwards every call to another observer, which must outlive it. Derive and override what differs.
class WorkObserverWrapper : public WorkObserver {
 public:
  explicit WorkObserverWrapper(WorkObserver& inner) : inner_(inner) {}

  void Acquired(const WorkItem& item, const pipeline::Progress& from) override {
    inner_.Acquired(item, from);
  }
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    inner_.Advanced(item, progress);
  }
  void Renewed(const WorkItem& item) override { inner_.Renewed(item); }
  void Split(const WorkItem& item, const pipeline::Progress& progress) override {
    inner_.Split(item, progress);
  }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* why) override {
    inner_.Ended(item, outcome, why);
  }
  void Waits(const std::string& what) override { inner_.Waits(what); }

 protected:
  WorkObserver& inner() const { return inner_; }

 private:
  WorkObserver& inner_;
};

}  // namespace muster::work
