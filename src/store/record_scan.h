#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "muster/result.h"
#include "muster/store.h"

namespace muster::store {

// All records of a kind whose keys start with `prefix` and come after `after`, in byte order of the
// keys, read page by page:
//
//   for (RecordScan scan(store, kKind, run + "/");;) {
//     MUSTER_ASSIGN(std::optional<Record> record, scan.Next());
//     if (!record) break;
//     ...
//   }
//
// Not a snapshot: a record that is changed meanwhile is seen as it was when its page was read. Used
// by one thread; the store must outlive it.
class RecordScan {
 public:
  RecordScan(Store& store, std::string kind, std::string prefix, int page = kMaxBatch,
             std::string after = {});

  // None: the end. After an error the same page is tried again.
  Result<std::optional<Record>> Next();

 private:
  Store& store_;
  const std::string kind_;
  const std::string prefix_;
  const int page_;
  std::string after_;
  std::vector<Record> records_;
  size_t next_ = 0;
  bool last_ = false;
};

}  // namespace muster::store
