#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "work/item_body.h"
#include "work/records.h"

namespace muster::work {

// Whether the store has all pages of a prepared run and the items they name. Not so if it lost
// commits during the preparation.
Result<bool> IsWhole(store::Store& store, const std::string& run, int pages);

// Finds the open items of a run: reads items by key, page by page and along their successors, and
// remembers those seen done. A finished page is marked in the store and never read again, so all
// workers together read every item about once.
class RunRoster {
 public:
  RunRoster(store::Store& store, Env& env, std::string run)
      : store_(store), env_(env), run_(std::move(run)) {}

  // Whether every item is done or quarantined.
  Result<bool> Settled();

  struct OpenItem {
    std::string key;
    std::string holder;
    ItemBody body;
    std::optional<WallTime> due = {};  // of a held item, when its lease ends
  };
  // After Settled returned false: the open items of one page.
  const std::vector<OpenItem>& open() const { return open_; }

  // After Settled returned true: the quarantined items, by name.
  const std::vector<std::string>& quarantined() const { return quarantined_; }

  // The incarnation that Settled judged.
  const std::string& incarnation() const { return incarnation_; }

  // After Settled returned true with nothing quarantined: records the end of the run. False: the
  // store has lost commits meanwhile.
  Result<bool> End();

 private:
  Result<bool> AllPagesSettled();
  Result<bool> AllDoneNow();
  // False: the page has open items, now in open_.
  Result<bool> PageSettled(int page);
  struct Named {
    std::string name;
    std::optional<pipeline::Partition> successor;  // none: one of the page's own
    std::string from = {};                         // its predecessor
    int64_t rank = 0;                              // rank of the predecessor's last holder
  };
  struct Done {
    std::vector<pipeline::Partition> successors = {};
    int64_t rank = 0;
  };
  Status Look(const Named& item, Done& found);

  store::Store& store_;
  Env& env_;
  const std::string run_;
  std::string incarnation_;
  int first_page_ = 0;  // random start, so that workers share the reading
  std::set<int> done_pages_;
  std::map<std::string, Done> done_;  // items
  bool remembered_ = false;           // part of the page was not read again
  bool doubtful_ = false;             // and a remembered successor is missing
  std::vector<OpenItem> open_;
  std::vector<std::string> quarantined_;
};

}  // namespace muster::work
