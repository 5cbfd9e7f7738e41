#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster::testing {

// One kind of sink under test, with its own target, initially empty.
class SinkUnderTest {
 public:
  virtual ~SinkUnderTest() = default;

  // A sink on the same target, as another process would open it.
  virtual std::unique_ptr<pipeline::Sink> Open() = 0;

  // The field `name` of every document that counts in the target, sorted, with duplicates.
  virtual std::vector<std::string> Names() = 0;

  // Removes the target and recreates it under the same name, as an operator would.
  virtual void Replace() = 0;

  // Whether documents of several runs may go into one collection.
  virtual bool SharedByRuns() const { return true; }
};

// The collection of the suite's documents: with the fields `name` and `number`.
pipeline::Collection SuiteCollection();

// To add a sink: its name here, and a class in sinks.cc.
std::vector<std::string> SinkNames();
// Those that store progress beside the documents, and refuse older epochs and sealed items.
std::vector<std::string> FencedSinkNames();

// nullptr: not available here; `reason` says why.
std::unique_ptr<SinkUnderTest> NewSink(const std::string& name, std::string* reason);

}  // namespace muster::testing
