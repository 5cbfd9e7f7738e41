#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/field_infos.h"
#include "muster/result.h"

namespace muster::lucene {

// A document as Elasticsearch or OpenSearch knows it. The views hold until the next one is read.
struct Document {
  uint64_t position = 0;  // the number of the Lucene document, over all segments of the shard
  std::string type;       // empty where Elasticsearch no longer stores it
  std::string id;
  std::optional<std::string_view> routing;
  std::optional<std::string_view> source;           // bytes exactly as they were sent
  std::optional<std::string_view> recovery_source;  // kept beside a filtered or disabled _source
};

// Which numbers the fields have that make up a document.
struct DocumentFields {
  static DocumentFields Find(const std::vector<FieldInfo>& fields);

  std::optional<uint32_t> id;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> routing;
  std::optional<uint32_t> source;
  std::optional<uint32_t> recovery_source;
};

// Which of the two ways numbers are stored: Lucene 4.1's, or that of all later versions.
enum class NumberForm { kFixed, kVariable };

// Decodes the stored fields of one Lucene document into all of `document` but its position. False
// for a document without an id: it is nested in the one that follows it.
Result<bool> ParseDocument(std::string_view bytes, uint32_t field_count,
                           const DocumentFields& fields, NumberForm form, ByteOrder order,
                           Document& document);

// Puts the text of an id, from the binary form that Elasticsearch 6 and later store, in place of
// what `id` held. kCorrupt if it is empty or of no known form.
Status DecodeId(std::string_view bytes, std::string& id);

}  // namespace muster::lucene
