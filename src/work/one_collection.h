#pragma once

#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace muster::work {

// A source as if it had one collection only, which the caller has described already: listing all of
// them again may be expensive. What lies outside of collections is the caller's to migrate. Both
// arguments must outlive it.
class OneCollection : public pipeline::SourceWrapper {
 public:
  OneCollection(pipeline::Source& source, const pipeline::Collection& collection)
      : SourceWrapper(source), collection_(collection) {}

  Result<std::vector<pipeline::Collection>> Collections() override {
    return std::vector{collection_};
  }
  Result<std::string> GlobalMetadata() override { return std::string("{}"); }

 private:
  const pipeline::Collection& collection_;
};

}  // namespace muster::work
