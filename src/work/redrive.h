#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"
#include "pipeline/dead_letter_source.h"

namespace muster {

struct RedriveRequest {
  std::string letters;               // the file
  std::string sink;                  // a URL
  std::string transforms = {};       // as declared in YAML; empty: none are named
  std::string transforms_file = {};  // for messages
  // Where the runs of the letters are looked for; opened only if letters name one. Must outlive the
  // call.
  std::function<Result<Store*>()> store = {};
  bool all = false;  // also those that a recorded redrive has settled
};

struct RedriveReport {
  Counts counts = {};
  BadLines bad_lines = {};
  int64_t earlier = 0;                     // letters that a recorded redrive has settled before
  std::vector<std::string> recorded = {};  // runs whose counts follow
  std::vector<std::string> notes = {};     // what a person should know

  bool IsAll() const { return counts.failed == 0 && bad_lines.count == 0; }
};

// Writes the dead letters of a file into a sink: each into the collection that it was on its way
// to. A document that the sink had refused is written as it is, since it has been transformed. One
// that failed before goes through the transforms, which may be corrected ones. What fails again
// goes to the file that AgainPathOf names.
//
// Letters of a version that did not name the target are written as they are, into the collection
// that the transforms' renames say.
//
// For letters of a run that the store has, and that goes to this sink, it is a step of the run:
// which of them are settled is recorded, the run's counts follow, and no later redrive takes them
// again, from whichever file. What failed again may be taken from either file. A crash before it is
// recorded repeats the step, which writes the same documents.
//
// kInvalid, and nothing is written: letters need transforms and none are named; or they do not name
// their target, no renames are named, and the sink has no collection of the source's name.
Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                         std::stop_token stop);

std::string AgainPathOf(const std::string& path);

}  // namespace muster
