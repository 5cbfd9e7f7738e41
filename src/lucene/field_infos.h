#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lucene/segment_files.h"

namespace muster::lucene {

// The relevant properties of a field.
struct FieldInfo {
  std::string name = {};
  uint32_t number = 0;
  bool is_soft_deletes = false;
  uint8_t doc_values_type = 0;  // 0: none
  bool has_skip_index = false;
  int64_t doc_values_gen = -1;  // -1: in the base files
  std::string doc_values_format = {};
  std::string doc_values_suffix = {};
  bool compresses_binary = false;  // Lucene80DocValuesFormat.mode is BEST_COMPRESSION
};

// Parses `.fnm` of Lucene 4.0 to 10. `file` is its whole content; CRC (if any) and segment id are
// checked.
Result<std::vector<FieldInfo>> ParseFieldInfos(std::string_view file, std::string_view segment_id,
                                               std::string_view origin);

// The fields of a segment after its last update.
Result<std::vector<FieldInfo>> ReadFieldInfos(const SegmentFiles& files);

}  // namespace muster::lucene
