#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/replica.h"

namespace muster {

// A projection in any language: a child process that reads events from its standard input, one
// line of JSON each (see EventToJson), and answers on its standard output
//
//   {"ack":POSITION}                     all events up to that position are dealt with
//   {"error":"why","position":POSITION}  that event cannot be
//
// It is started when there is something to handle, told about its partition by MUSTER_…
// variables, and started anew after it has failed, ended or taken too long. What it changes is
// outside the checkpoint's transaction: after a crash it may be given events again that it has
// acknowledged, and tells them by their position. It and all that it has started in its process
// group end with the worker, however that ends: what is handled again is not handled twice at once.
struct ExecProjectionSpec {
  std::string name;
  std::vector<std::string> command;
  milliseconds timeout{30'000};  // without an answer
};

Result<std::shared_ptr<Projection>> NewExecProjection(const ExecProjectionSpec& spec);

}  // namespace muster
