#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "states/asl/definition.h"
#include "states/run/flow.h"

namespace muster::states {

// The result of one child of a distributed Map.
struct ChildResult {
  int64_t index = 0;
  std::string name = {};
  FlowStatus status = FlowStatus::kSucceeded;  // kRunning: it was never started
  Value input = {};
  Value output = {};  // of one that has succeeded
  Failure failure = {};
  WallTime start = {};
  WallTime stop = {};
};

// Returns the children of a Map from an index on, in order, a hundred or so at a time; none at the
// end. Repeatable.
using ChildResults = std::function<Result<std::vector<ChildResult>>(int64_t from)>;

// A child in the format of a ResultWriter without a transformation, which is always used for those
// that did not succeed.
Json DescribeChild(const ChildResult& child, const std::string& machine);

// The output of a Map that does not write its results: those of all children that succeeded.
Json InlineResults(const std::vector<ChildResult>& children, const ResultWriter& writer,
                   const std::string& machine);

// The next file to write, of bounded size. Its name and content are the same whenever and wherever
// it is made, so that a write of unknown outcome can be repeated.
Result<ResultsFile> NextResultsFile(const ResultsProgress& progress, const ResultWriter& writer,
                                    const std::string& machine, const std::string& map_run,
                                    const ChildResults& children);

// Records that a file was written.
void ResultsFileWritten(ResultsProgress& progress, const ResultsFile& file);

}  // namespace muster::states
