#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "muster/store.h"
#include "store/server_clock.h"

namespace muster::store {

// Records as documents. Fields are as in Record, plus
//   ready     from when on others may claim it; see ServerClock::Times. Absent, like due: never
//   claim_id  of the last claim
//   write_id  new at every change: identifies the writer
// `body` is a string, so that it comes back byte for byte.

// The sequence number and primary term of a document's last change, which the next one is
// conditional on.
struct DocumentVersion {
  int64_t seq_no = 0;
  int64_t primary_term = 0;

  // As one number that grows with every change, also across elections and restarts. A document that
  // is deleted and recreated gets a new number.
  int64_t Packed() const;
  static DocumentVersion Unpack(int64_t version);
};

// The id of a record's document: KIND/KEY, the kind percent-encoded, if that fits in the 512 bytes
// of an id, otherwise a hash.
std::string DocumentId(std::string_view kind, std::string_view key);

// `found` is a response with _seq_no, _primary_term and _source.
Record RecordOf(const Json& found);
Record RecordOf(const Json& source, DocumentVersion version);
DocumentVersion VersionOf(const Json& found);

// The document of a new record.
Json NewDocument(const Record& record, std::optional<ServerClock::Times> times,
                 const std::string& write_id);

// The fields that a change of `record` sets; the others stay.
Json ChangedFields(const Change& change, std::optional<ServerClock::Times> times,
                   const std::string& write_id);

}  // namespace muster::store
