#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lucene/doc_set.h"
#include "lucene/doc_values_meta.h"
#include "lucene/field_infos.h"
#include "lucene/segment_files.h"

namespace muster::lucene {

// Finds the entry of numeric field `number` in the body of a `.dvm` of Lucene 7 to 10, skipping
// other fields. `format` is 70, 80 or 90. kCorrupt: not found.
Result<DocSetLocation> FindNumericField(ByteReader reader, int format, uint32_t version,
                                        const std::vector<FieldInfo>& fields, uint32_t number);

// Reads a set of documents from its bytes in `.dvd`.
Result<DocSet> ParseDocSet(std::string_view bytes, ByteOrder order, const DocSetLocation& location,
                           uint32_t max_doc, std::string_view origin);

// The documents with a value in the soft-deletes field; none if the segment has no such field.
Result<std::optional<DocSet>> ReadSoftDeletes(const SegmentFiles& files,
                                              const std::vector<FieldInfo>& fields);

}  // namespace muster::lucene
