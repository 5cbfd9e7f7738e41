#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster::testing {

// One kind of sink under the contract, with a target of its own, empty at first.
class SinkUnderTest {
 public:
  virtual ~SinkUnderTest() = default;

  // A sink on the same target, as another process would open it.
  virtual std::unique_ptr<Sink> Open() = 0;

  // The field `name` of every document in the target that counts, sorted, as often as it is there.
  virtual std::vector<std::string> Names() = 0;

  // Removes the target and makes another of its name, as a person would.
  virtual void Replace() = 0;

  // Whether the documents of several runs may go into one collection.
  virtual bool SharedByRuns() const { return true; }
};

// What the documents of the suite go into: one with the fields `name` and `number`.
Collection SuiteCollection();

// A sink is added by its name here and a class in sinks.cc.
std::vector<std::string> SinkNames();
// Those that keep progress beside the documents, and refuse older epochs and sealed items.
std::vector<std::string> FencedSinkNames();

// nullptr: it cannot be had here; `reason` says why.
std::unique_ptr<SinkUnderTest> NewSink(const std::string& name, std::string* reason);

}  // namespace muster::testing
