#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/file_calls.h"
#include "sim/simulation.h"

namespace muster::sim {

// The disk shared by all processes. Writes may be partial, the disk may be full for a while, a sync
// may fail, and a power failure loses unsynced data, or part of it.
//
// A failed sync behaves as on Linux: its data may be on disk or not, counts as clean from then on,
// and is still read. The failure is reported once to each open descriptor.
class SimFiles {
 public:
  explicit SimFiles(Simulation& sim) : sim_(sim) {}

  // One process's view of it.
  std::unique_ptr<FileCalls> CallsOf(Env& env);

  // Empty: no such file.
  std::string Content(const std::string& path) const;

  // What a loss of power would certainly leave.
  std::string OnDisk(const std::string& path) const;

 private:
  class Calls;
  struct File {
    void Append(std::string_view added);
    void Truncate(size_t size);
    // The first so many bytes of those that the disk does not have yet.
    void WriteOut(size_t count);
    size_t Unsynced() const;

    struct Range {
      size_t begin;
      size_t end;
    };

    std::string bytes;
    std::string disk;          // certainly there
    std::vector<Range> dirty;  // of bytes: to be written with the next sync
    int failed_syncs = 0;
    int locked_by = 0;  // the descriptor that holds the lock
  };
  struct Opened {
    std::shared_ptr<File> file;
    int failed_syncs = 0;  // that it has reported
  };
  struct Name {
    std::shared_ptr<File> file;
    bool synced = false;
  };

  int Sync(Opened& opened);
  bool IsFull();
  void MaybeLosePower();
  void LosePowerAfter(nanoseconds delay);
  void LosePower();

  Simulation& sim_;
  std::map<std::string, Name> names_;
  nanoseconds full_until_{0};
  bool fails_ = false;  // the last sync has failed
  int last_fd_ = 0;
};

}  // namespace muster::sim
