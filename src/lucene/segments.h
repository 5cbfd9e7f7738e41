#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/shard_directory.h"

namespace muster::lucene {

// A segment as the commit lists it.
struct SegmentCommit {
  std::string name;
  std::string id;           // 16 bytes; empty before Lucene 5
  int64_t delete_gen = -1;  // -1: no deletions
  int32_t delete_count = 0;
  int64_t field_infos_gen = -1;
  int32_t soft_delete_count = -1;  // -1: not known, before Lucene 7.4
};

// Reads `segments_N`, from Lucene 4.0 to 10. `file` is all of it; its CRC is checked.
Result<std::vector<SegmentCommit>> ParseSegments(std::string_view file, std::string_view origin);

// The segments of a shard, by its one commit, in the order of the commit.
Result<std::vector<SegmentCommit>> ReadSegments(const ShardDirectory& directory);

// What `.si` says of a segment.
struct SegmentInfo {
  std::string lucene_version;  // "8.7.0"
  int32_t max_doc = 0;         // documents, deleted and nested ones included
  bool is_compound = false;
};

// Reads `_N.si` of Lucene 4.0 to 10. `file` is all of it; CRC (where there is one) and segment id
// are checked.
Result<SegmentInfo> ParseSegmentInfo(std::string_view file, std::string_view segment_id,
                                     std::string_view origin);

}  // namespace muster::lucene
