#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"
#include "pipeline/pipeline.h"

namespace muster::work {

struct RedriveRequest {
  std::string letters;               // the file
  std::string sink;                  // a URL
  std::string transforms = {};       // YAML; empty: none given
  std::string transforms_file = {};  // for messages
  // Opens the store to look up the letters' runs; called only if letters name one. Must outlive the
  // call.
  std::function<Result<store::Store*>()> store = {};
  std::string worker = "redrive";  // this process, for people
  bool all = false;                // include letters settled by a recorded redrive
};

struct RedriveReport {
  pipeline::Counts counts = {};
  pipeline::BadLines bad_lines = {};
  int64_t earlier = 0;                     // letters settled by an earlier recorded redrive
  std::vector<std::string> recorded = {};  // runs whose counts are updated
  std::vector<std::string> notes = {};     // for the user

  bool IsAll() const { return counts.failed == 0 && bad_lines.count == 0; }
};

// Writes a file's dead letters into a sink, each into the collection it was meant for. A document
// that the sink refused is written as is, since it was already transformed. One that failed earlier
// goes through the transforms, which may have been corrected. Documents that fail again go to the
// file named by AgainPathOf.
//
// Letters from a version that did not record the target are written as is, into the collection
// given by the transforms' renames.
//
// For letters of a run that is in the store and targets this sink, it is a step of the run: settled
// letters are recorded, the run's counts are updated, and no later redrive takes them again, from
// whichever file. Documents that failed again may be taken from either file. One redrive of a run
// at a time: another waits for it a little, then fails with kConflict. After a crash the next
// redrive continues behind what a sink with a fence has committed; any other sink must accept the
// same documents again. With `all`, rows of settled letters are replaced by key.
//
// kIncompatible: the sink has redriven letters that the store does not know of.
//
// kInvalid, and nothing is written: letters need transforms and none are given; or they do not name
// their target, no renames are given, and the sink has no collection of the source's name.
Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                         std::stop_token stop);

std::string AgainPathOf(const std::string& path);

}  // namespace muster::work
