#pragma once

#include <string>
#include <vector>

#include "muster/result.h"
#include "states/asl/jsonata_engine.h"

namespace muster::states {

// The result of one case of a table.
struct CaseResult {
  std::string name;
  bool outcome = false;         // the output, or the error's name, is the expected one
  bool cause = false;           // … and the cause of the error
  bool events = false;          // … and the order of the events
  std::string difference = {};  // expected and actual, for display

  bool passed() const { return outcome && cause && events; }
};

// Runs one case in virtual time: an object with "name", "definition", "input", and as needed
// "mocks", "expected_output" or "expected_error" {"error", "cause" or "cause_masked"} and
// "expected_events" [["ExecutionStarted"],["PassStateEntered","Name"],…]. Only what
// is given is compared. kInvalid: not such a case.
Result<CaseResult> RunCase(const Json& test_case, JsonataEngine* jsonata);

}  // namespace muster::states
