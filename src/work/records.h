#pragma once

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
inline constexpr char kWorkKind[] = "work";        // RUN/NAME: the items, in the queue RUN
inline constexpr char kWishKind[] = "split_wish";  // RUN/NAME: somebody would take a part of it

struct RunBody {
  std::string incarnation;
  bool adopts = false;
  bool ready = false;     // all items are there
  bool finished = false;  // all items are done, and so are the sink's collections
  int pages = 0;          // once it is ready
  std::string source;
  std::string sink;
  std::string transforms;
  int64_t created_ms = 0;  // by the clock of who created it, for people

  std::string ToJson() const;
  static Result<RunBody> FromJson(const std::string& json);
};

struct PageBody {
  bool done = false;               // all of its items and their successors are; never undone
  std::vector<std::string> items;  // names

  std::string ToJson() const;
  static Result<PageBody> FromJson(const std::string& json);
};

std::string PageKey(const std::string& run, int page);

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
