#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lucene/doc_set.h"
#include "lucene/field_infos.h"
#include "lucene/segment_files.h"

namespace muster::lucene {

// Parses `.liv` (Lucene 5 and later) or `.del` (Lucene 4): the live documents. `file` is its whole
// content; its CRC (if any) is checked.
Result<DocSet> ParseLiveDocs(std::string_view file, std::string_view segment_id, uint32_t max_doc,
                             std::string_view origin);

// The documents of a segment that are neither hard- nor soft-deleted; none if all are live. Both
// counts are checked against the commit.
Result<std::optional<DocSet>> ReadLiveDocs(const SegmentFiles& files,
                                           const std::vector<FieldInfo>& fields);

}  // namespace muster::lucene
