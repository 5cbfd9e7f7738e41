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

namespace muster {

// Whether the store has all pages of a run that was prepared, and the items that they name. Not so
// if it lost commits while the run was being prepared.
Result<bool> IsWhole(Store& store, const std::string& run, int pages);

// Who of a run is still at work: reads its items by key, page by page and along their successors,
// and remembers what it has seen done. A page that is all done is marked so in
// the store, and read by nobody again. So all workers together read every item about once.
class RunRoster {
 public:
  RunRoster(Store& store, Env& env, std::string run)
      : store_(store), env_(env), run_(std::move(run)) {}

  // Whether every item is done or quarantined.
  Result<bool> Settled();

  struct OpenItem {
    std::string key;
    std::string holder;
    ItemBody body;
  };
  // After Settled said no: the open items of one page that has some.
  const std::vector<OpenItem>& open() const { return open_; }

  // Items that nobody works on any more, by name, when Settled has said yes.
  const std::vector<std::string>& quarantined() const { return quarantined_; }

  // The one that Settled has judged.
  const std::string& incarnation() const { return incarnation_; }

  // Settled has said yes, and nothing is quarantined: notes that the run has come to its end.
  // False: not so, the store has taken something back meanwhile.
  Result<bool> End();

 private:
  Result<bool> AllPagesSettled();
  Result<bool> AllDoneNow();
  // False: some of the page's items are open; they are in open_.
  Result<bool> PageSettled(int page);
  struct Named {
    std::string name;
    std::optional<Partition> successor;  // none: one of the page's own
    std::string from = {};               // who gave it away
    int64_t rank = 0;                    // and of which rank that one's last holder was
  };
  struct Done {
    std::vector<Partition> successors = {};
    int64_t rank = 0;
  };
  Status Look(const Named& item, Done& found);

  Store& store_;
  Env& env_;
  const std::string run_;
  std::string incarnation_;
  int first_page_ = 0;  // that is looked at; chosen at random, so that many share the reading
  std::set<int> done_pages_;
  std::map<std::string, Done> done_;  // items
  bool remembered_ = false;           // something of the page was not read again
  bool doubtful_ = false;             // and a successor that we remember is not there
  std::vector<OpenItem> open_;
  std::vector<std::string> quarantined_;
};

}  // namespace muster
