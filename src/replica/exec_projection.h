#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/replica.h"

namespace muster::replica {

// A projection in any language: a child process that reads events from stdin, one line of JSON each
// (see EventToJson), and replies on stdout
//
//   {"ack":POSITION}                     all events up to that position are handled
//   {"error":"why","position":POSITION}  that event cannot be handled
//
// It is started when there are events to handle, gets its partition in MUSTER_… variables, and is
// restarted after it fails, exits or times out. Its changes are outside the checkpoint's
// transaction: after a crash it may receive acknowledged events again, and must recognise them by
// position. It and its process group end with the worker, however that ends, so that no event is
// handled twice at the same time.
struct ExecProjectionSpec {
  std::string name;
  std::vector<std::string> command;
  milliseconds timeout{30'000};  // without a reply

  // The file of the command that is the projection's own program, as the command names it, and the
  // SHA-256 of its content: a part of the definition. Empty: it has none.
  std::string program = {};
  std::string sha256 = {};
};

// Sets the program: the first file that the command names and that is in `folder`, the
// definition's. What is elsewhere, such as an interpreter, is the machine's. kInvalid: it cannot be
// read.
Status FindProgram(const std::string& folder, ExecProjectionSpec& spec);

// `env` must outlive the projection.
Result<std::shared_ptr<Projection>> NewExecProjection(const ExecProjectionSpec& spec, Env& env);

}  // namespace muster::replica
