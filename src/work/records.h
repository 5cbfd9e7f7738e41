#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "work/item_body.h"

namespace muster {

// The kinds of records that a run consists of.
inline constexpr char kRunKind[] = "run";          // one, RUN: what is migrated, and how far it is
inline constexpr char kPrepareKind[] = "prepare";  // one, RUN: leased by who creates the items
inline constexpr char kPageKind[] = "run_page";    // RUN/000001: the names of up to 1000 items
inline constexpr char kEndKind[] = "run_end";  // RUN/INCARNATION and …/000001: what is all done
inline constexpr char kWorkKind[] = "work";    // RUN/NAME: the items, in the queue RUN
inline constexpr char kSplitRequestKind[] =
    "split_wish";                                  // RUN/NAME: somebody would take a part of it
inline constexpr char kRedriveKind[] = "redrive";  // RUN/00 … RUN/ff: dead letters that are settled
inline constexpr char kTargetKind[] = "target";  // RUN/INCARNATION/HASH: what a collection goes to

struct RunBody {
  std::string incarnation;
  bool adopts = false;
  bool ready = false;     // all items are there
  bool finished = false;  // as an earlier version noted it: today there is an end, see EndKey
  int pages = 0;          // once it is ready
  std::string source;
  std::string sink;
  std::string transforms;
  std::optional<std::string> selection = {};  // none: an earlier version did not note it
  int64_t created_ms = 0;                     // by the clock of who created it, for people
  int64_t since_ms = 0;  // when this incarnation began, by such a clock; later ones have more

  std::string ToJson() const;
  static Result<RunBody> FromJson(const std::string& json);
};

struct PageBody {
  std::vector<std::string> items;  // names

  std::string ToJson() const;
  static Result<PageBody> FromJson(const std::string& json);
};

// What a collection goes to, by its name and by what tells it from others of that name.
struct TargetBody {
  std::string target;
  std::string identity;

  std::string ToJson() const;
  static Result<TargetBody> FromJson(const std::string& json);
};

// Some of the dead letters of a run that redrives have settled. An earlier version kept only how
// many a file had.
struct RedriveBody {
  std::set<uint64_t> letters = {};  // their identities
  int64_t written = 0;
  int64_t skipped = 0;

  std::string ToJson() const;
  static Result<RedriveBody> FromJson(const std::string& json);
};

// The record that a letter belongs to.
std::string RedriveKey(const std::string& run, uint64_t letter);

std::string PageKey(const std::string& run, int page);

// That all items of a page, with their successors, or of the whole run (page 0) are done is a
// record of its own that counts for one incarnation: who has judged and comes late, after the store
// went back and another incarnation began, says nothing about that one.
std::string EndKey(const std::string& run, const std::string& incarnation, int page = 0);

// Whether the run has come to its end: all items are done, and so are the sink's collections.
Result<bool> IsFinished(Store& store, const std::string& run, const RunBody& body);

// The end of a run is first announced and then confirmed.
inline constexpr char kAnnounced[] = "{}";
inline constexpr char kConfirmed[] = "{\"confirmed\":true}";

// How far the creation of the items has come.
struct PrepareBody {
  bool done = false;
  size_t collection = 0;  // that is being listed
  size_t partitions = 0;  // of it that have been taken into pages
  int pages = 0;          // that have been written

  std::string ToJson() const;
  static Result<PrepareBody> FromJson(const std::string& json);
};

// Lets the preparation of a run begin with the first page. What is there already stays as it is.
Status BeginPreparation(Store& store, const std::string& run);

// Creates an item, due now.
Change NewItem(const std::string& run, const ItemBody& body);

// kInvalid: not a name that a run may have.
Status CheckRunName(const std::string& name);

}  // namespace muster
