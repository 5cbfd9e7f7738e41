#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster::testing {

// One kind of source under test: a collection of kDocuments documents, each with a different value
// of its field `name`, d000 to d059.
class SourceUnderTest {
 public:
  static constexpr int kDocuments = 60;

  virtual ~SourceUnderTest() = default;

  // A source of the same documents, as another process would open it.
  virtual std::unique_ptr<pipeline::Source> Open() = 0;

  // Whether it can split off part of what it reads.
  virtual bool splits() const { return true; }
};

// To add a source: its name here, and a class in sources.cc.
std::vector<std::string> SourceNames();

// nullptr: not available here; `reason` says why.
std::unique_ptr<SourceUnderTest> NewSource(const std::string& name, std::string* reason);

}  // namespace muster::testing
