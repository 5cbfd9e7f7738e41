#pragma once

#include <map>
#include <string>

#include "muster/pipeline.h"
#include "sim/faulty_wire.h"
#include "sim/table_sink.h"

namespace muster::sim {

// A target like a search engine: documents by id, each with its snapshot's version, and no fences.
// A request is answered per document: accepted, refused because a later version exists, or not now.
struct DocumentTarget {
  struct Stored {
    int64_t version = 0;
    bool deleted = false;
    std::string body;
  };
  struct Entry {
    std::string id;
    std::string body;
  };

  // The version being migrated; an earlier migration wrote the previous one. Within it, those that
  // read a document later have a higher rank.
  static constexpr int64_t kRanks = int64_t{1} << 20;
  static constexpr int64_t kVersion = 2 * kRanks;
  static int64_t VersionOf(const pipeline::Fence& fence) { return kVersion + fence.rank; }

  DocumentTarget(Simulation& simulation, SinkObserver sink_observer)
      : sim(simulation), wire(simulation), observer(std::move(sink_observer)) {}

  // False: a later version exists, and stays.
  bool Take(const std::string& collection, const Entry& entry, int64_t version);

  // Returns what was not accepted now.
  std::vector<Entry> Bulk(const std::string& collection, const pipeline::Fence& fence,
                          const std::vector<Entry>& entries, bool late);

  Simulation& sim;
  FaultyWire wire;
  SinkObserver observer;
  bool cured = false;  // takes the documents that it refused
  // Its writers retry until their deadline; otherwise the first failure counts.
  bool patient = true;
  std::map<std::string, std::map<std::string, Stored>> indexes;  // by collection and id
};

// One process's access to it. Documents whose id ends with '!' are permanently refused. With
// `buffered`, documents are sent only when flushed: a crash loses them.
class DocumentSink final : public pipeline::Sink {
 public:
  DocumentSink(DocumentTarget& target, Env& env, nanoseconds pace, bool buffered)
      : target_(target), env_(env), pace_(pace), buffered_(buffered) {}

  Result<std::vector<pipeline::TargetChange>> Prepare(const pipeline::Collection& collection,
                                                      bool evaluate) override;
  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& fence) override;

 private:
  class DocumentWriter;

  DocumentTarget& target_;
  Env& env_;
  const nanoseconds pace_;
  const bool buffered_;
};

}  // namespace muster::sim
