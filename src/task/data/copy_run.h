#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/work.h"

namespace muster::task {

// A copy: its source, its name, and its local folder.
struct CopyPlan {
  std::string object;
  std::string call;      // the call's token without its retry count
  std::string source;    // for display, without secrets
  std::string identity;  // of the source: its URL, with secrets by reference
  std::string place;     // the copy's result, for display
  std::string run_name;  // in the dead letters
  std::string folder;    // of unfinished copies of this object, on this machine
};

// The rows of a finished copy.
struct CopiedRows {
  std::vector<std::string> pieces;  // JSONL files, in the source's order
  pipeline::Counts counts;
  std::string letters;  // the file of rows that could not be read; may be missing or have
                        // repetitions
};

// The copy of one object as a run of leased work items in a store, so that it is checkpointed,
// resumed inside the object, and shared by all processes that were given the same call. Pieces lie
// in FOLDER/RUN/INCARNATION until the copy is complete.
//
// The run is named after the call: a repetition finds its own. Used by one thread.
class CopyRun {
 public:
  // `store` and `env` must outlive it.
  CopyRun(store::Store& store, Env& env, CopyPlan plan, const work::WorkTerms& terms);

  // Whether it has begun, in an earlier call or in another process, and its pieces are here.
  Result<bool> HasBegun();

  // Joins it, or starts it; removes what other calls left of this object.
  Status Begin();

  // Works on it until it is complete. `progress` is called with the rows copied so far, by all.
  // Ends at the first failure. kIncompatible: store and pieces contradict each other, so it must
  // start over.
  Status Drive(pipeline::Source& source, const pipeline::Collection& collection,
               const std::function<void(int64_t rows)>& progress, const std::stop_token& stop);

  Result<CopiedRows> Rows();

  // Removes it, and all remains of other calls for this object. Idempotent.
  Status Remove();

 private:
  std::string RunFolder() const { return plan_.folder + "/" + name_; }
  std::string PiecesFolder() const { return RunFolder() + "/" + incarnation_; }
  Result<std::optional<std::string>> Incarnation();
  Status RemoveOtherCalls();

  store::Store& store_;
  Env& env_;
  const CopyPlan plan_;
  const work::WorkTerms terms_;
  const std::string name_;
  std::string incarnation_;  // once begun
};

}  // namespace muster::task
