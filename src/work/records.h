#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/work.h"
#include "work/item_body.h"  // IWYU pragma: export

namespace muster::work {

// What to do if the store has lost something that it had.
inline constexpr char kRestored[] =
    "if the store was restored from a backup, or lost commits in a failover, start one worker with"
    " --new-incarnation: it then continues from what the sink has";

// What to do about a run that is gone from its store.
inline constexpr char kGoneHint[] =
    "if it was deleted, nothing is wrong: a worker that is started now starts it over; if the store"
    " was restored from a backup, or replaced, start one worker with --new-incarnation: it then"
    " continues from what the sink has";

// The record kinds of a run.
inline constexpr char kRunKind[] = "run";          // one, RUN: what is migrated, and how far it is
inline constexpr char kPrepareKind[] = "prepare";  // one, RUN: leased while creating the items
inline constexpr char kPageKind[] = "run_page";    // RUN/000001: the names of up to 1000 items
inline constexpr char kEndKind[] = "run_end";      // RUN/INCARNATION and …/000001: what is done
inline constexpr char kWorkKind[] = "work";        // RUN/NAME: the items, in the queue RUN
inline constexpr char kSplitRequestKind[] =
    "split_wish";                                  // RUN/NAME: an idle worker wants a part of it
inline constexpr char kRedriveKind[] = "redrive";  // RUN/00 … RUN/ff: settled dead letters
inline constexpr char kRedriveLeaseKind[] =
    "redrive_lease";  // RUN/lease: leased while dead letters are redriven
inline constexpr char kBudgetKind[] = "budget";  // one, RUN: leased while counting what has failed
inline constexpr char kTargetKind[] = "target";  // RUN/INCARNATION/HASH: a collection's target
inline constexpr char kChosenKind[] = "chosen";  // RUN/INCARNATION/HASH: what documents may choose

// Why a run is stopped: as counted then.
struct StopBody {
  int64_t read = 0;
  int64_t failed = 0;
  FailureReason most = {};  // the most frequent
};

struct RunBody {
  std::string incarnation;
  bool adopts = false;
  bool ready = false;     // all items exist
  bool finished = false;  // written by earlier versions; now there is an end, see EndKey
  int pages = 0;          // set once ready
  std::string source;
  std::string sink;
  std::string transforms;
  std::optional<std::string> selection = {};  // none: written by a version that did not record it
  FailureLimit max_failures = {};
  std::optional<StopBody> stopped = {};  // too many documents have failed
  bool removing = false;                 // its records are being removed
  int64_t created_ms = 0;                // by the creator's clock, for display
  int64_t since_ms = 0;  // start of this incarnation, by the store's clock; later ones are larger
  // Start of the first incarnation that continues to this one: dead letters from before are of
  // another start, since when the run was reset or deleted. 0: unknown.
  int64_t begun_ms = 0;

  std::string ToJson() const;
  static Result<RunBody> FromJson(const std::string& json);
};

// The error that ends a worker: the run is stopped or being removed. Success: it goes on.
Status CheckGoesOn(const std::string& run, const RunBody& body);

// "more than 20 of its documents have failed …"; empty: it is not stopped.
std::string WhyStopped(const RunBody& body);

// What to do about a run that is stopped.
inline constexpr char kStoppedHint[] =
    "fix the cause; then write the dead letters again with 'muster work redrive', or allow for them"
    " with a higher --max-failures, and start the workers again";

// Why the holder of an item stops in good order.
inline constexpr char kRunIsStopped[] = "the run is stopped";
inline constexpr char kRunIsRemoved[] = "the run is being removed";

struct PageBody {
  std::vector<std::string> items;  // names

  std::string ToJson() const;
  static Result<PageBody> FromJson(const std::string& json);
};

// A collection's target, by name and identity.
struct TargetBody {
  std::string target;
  std::string identity;

  std::string ToJson() const;
  static Result<TargetBody> FromJson(const std::string& json);
};

// Some of the dead letters of a run that redrives have settled. An earlier version stored only the
// number per file.
struct RedriveBody {
  // Of letters that are settled. One of which several documents were made counts them all; those
  // that failed are letters of their own, so that `written` + `skipped` - `added` is by how much
  // there are fewer letters.
  struct Outcome {
    int64_t written = 0;
    int64_t skipped = 0;
    int64_t added = 0;

    Outcome& operator+=(const Outcome& other);
  };
  std::set<uint64_t> letters = {};  // their identities
  Outcome total = {};
  // By the item that counts them as failed. Bounded, since a body is: letters of further items, and
  // those of earlier versions, are only in the totals.
  std::map<std::string, Outcome> items = {};

  void Count(const std::string& item, const Outcome& outcome);

  std::string ToJson() const;
  static Result<RedriveBody> FromJson(const std::string& json);
};

// The dead letters that a redrive is writing. Stored before the first of them reaches the sink, so
// that the next redrive can continue after a crash.
struct RedrivePageBody {
  int64_t number = 0;                   // grows with every page of the run
  std::string target = {};              // where they go
  std::vector<uint64_t> letters = {};   // their identities, in the order of writing; none: no page
  std::vector<std::string> items = {};  // those that count them as failed, by name
  std::vector<int64_t> item_of = {};    // of each letter, its index in `items`
  std::vector<int64_t> failed = {};     // indices of the letters that failed again

  std::string ToJson() const;
  static Result<RedrivePageBody> FromJson(const std::string& json);
};

std::string RedriveLeaseKey(const std::string& run);

// The record that contains a letter.
std::string RedriveKey(const std::string& run, uint64_t letter);

std::string PageKey(const std::string& run, int page);

// Records that all items of a page, with their successors, or of the whole run (page 0) are done.
// It is per incarnation: a late judgement, after the store went back and another incarnation began,
// must not affect that one.
std::string EndKey(const std::string& run, const std::string& incarnation, int page = 0);

// Whether the run has finished: all items are done, and so are the sink's collections.
Result<bool> IsFinished(store::Store& store, const std::string& run, const RunBody& body);

// That everything of a page or run is done. The end of a run is announced, then confirmed.
struct EndBody {
  bool confirmed = false;

  std::string ToJson() const;
  static Result<EndBody> FromJson(const std::string& json);
};

// What was last counted of a run's documents.
struct BudgetBody {
  int64_t read = 0;
  int64_t failed = 0;
  // Of that, not in the run's items: of earlier collections, which had runs of their own.
  int64_t earlier_read = 0;
  int64_t earlier_failed = 0;

  std::string ToJson() const;
  static Result<BudgetBody> FromJson(const std::string& json);
};

// That an idle worker wants a part of an item.
struct SplitRequestBody {
  std::string by = {};  // the worker, for display

  std::string ToJson() const;
  static Result<SplitRequestBody> FromJson(const std::string& json);
};

// Progress of creating the items.
struct PrepareBody {
  bool done = false;
  // The collections, by name in order, as selected before any target was created: later the source
  // may list others, among them the run's own targets. Empty: not recorded, for they are too many
  // for a record, or by an earlier version.
  std::vector<std::string> selected = {};
  size_t collection = 0;  // being listed
  size_t partitions = 0;  // of it, already in pages
  int pages = 0;          // written

  std::string ToJson() const;
  static Result<PrepareBody> FromJson(const std::string& json);
};

// Starts the preparation of a run at the first page, with the same collections as before, and takes
// it from its holder. Does nothing if the run is in another incarnation than the caller knows,
// which prepares itself.
Status BeginPreparation(store::Store& store, const std::string& run,
                        const std::string& incarnation);

// Creates an item, due now.
store::Change NewItem(const std::string& run, const ItemBody& body);

// kInvalid: not a valid run name.
Status CheckRunName(const std::string& name);

}  // namespace muster::work
