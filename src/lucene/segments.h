#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/shard_directory.h"

namespace muster::lucene {

// A segment as listed in the commit.
struct SegmentCommit {
  std::string name;
  std::string id;           // 16 bytes; empty before Lucene 5
  int64_t delete_gen = -1;  // -1: no deletions
  int32_t delete_count = 0;
  int64_t field_infos_gen = -1;
  int32_t soft_delete_count = -1;  // -1: unknown, before Lucene 7.4
};

// Parses `segments_N` of Lucene 4.0 to 10. `file` is its whole content; its CRC is checked.
Result<std::vector<SegmentCommit>> ParseSegments(std::string_view file, std::string_view origin);

// The segments of a shard, in the order of its only commit.
Result<std::vector<SegmentCommit>> ReadSegments(const ShardDirectory& directory);

// The content of `.si`.
struct SegmentInfo {
  std::string lucene_version;  // "8.7.0"
  int32_t max_doc = 0;         // including deleted and nested documents
  bool is_compound = false;
};

// Parses `_N.si` of Lucene 4.0 to 10. `file` is its whole content; CRC (if any) and segment id are
// checked.
Result<SegmentInfo> ParseSegmentInfo(std::string_view file, std::string_view segment_id,
                                     std::string_view origin);

}  // namespace muster::lucene
