#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/field_infos.h"
#include "lucene/indexed_value.h"
#include "muster/result.h"

namespace muster::lucene {

// A document as Elasticsearch or OpenSearch sees it. Views are valid until the next one is read.
struct Document {
  uint64_t position = 0;  // the Lucene document number, across all segments of the shard
  std::string type;       // empty if Elasticsearch no longer stores it
  std::string id;
  std::optional<std::string_view> routing;
  std::optional<std::string_view> source;           // verbatim bytes
  std::optional<std::string_view> recovery_source;  // kept beside a filtered or disabled _source
  std::vector<std::vector<IndexedValue>> fields;    // of ShardReader::ReadFields, in their order
};

// The numbers of the fields that make up a document.
struct DocumentFields {
  static DocumentFields Find(const std::vector<FieldInfo>& fields);

  std::optional<uint32_t> id;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> routing;
  std::optional<uint32_t> source;
  std::optional<uint32_t> recovery_source;
  // Other stored fields that are wanted: number, and place in Document::fields.
  std::map<uint64_t, size_t> wanted = {};
};

// Lucene 4.1's number format, or that of all later versions.
enum class NumberForm { kFixed, kVariable };

// Decodes the stored fields of one Lucene document into all of `document` but its position; values
// of `wanted` ones are appended to its fields, which must be there. False
// for a document without an id: it is nested in the next one.
Result<bool> ParseDocument(std::string_view bytes, uint32_t field_count,
                           const DocumentFields& fields, NumberForm form, ByteOrder order,
                           Document& document);

// Decodes an id from the binary form of Elasticsearch 6 and later, replacing the content of `id`.
// kCorrupt: empty or of unknown form.
Status DecodeId(std::string_view bytes, std::string& id);

}  // namespace muster::lucene
