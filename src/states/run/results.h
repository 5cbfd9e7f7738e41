#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "states/asl/definition.h"
#include "states/run/flow.h"

namespace muster::states {

// What became of one child of a distributed Map.
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

// The children of a Map from an index on, in order, at most some hundred at a time. None: there are
// no more. May be asked for the same ones again and then answers the same.
using ChildResults = std::function<Result<std::vector<ChildResult>>(int64_t from)>;

// A child as a ResultWriter shows it that transforms nothing. Those that did not succeed are always
// shown like this.
Json DescribeChild(const ChildResult& child, const std::string& machine);

// What a Map gives whose results stay in its output: of all that have succeeded.
Json InlineResults(const std::vector<ChildResult>& children, const ResultWriter& writer,
                   const std::string& machine);

// The next file that is to be written, of bounded size. Files are named and filled the same by
// whoever asks: one that was perhaps written is simply written again.
Result<ResultsFile> NextResultsFile(const ResultsProgress& progress, const ResultWriter& writer,
                                    const std::string& machine, const std::string& map_run,
                                    const ChildResults& children);

// Notes that a file was written.
void ResultsFileWritten(ResultsProgress& progress, const ResultsFile& file);

}  // namespace muster::states
