#include "store/opensearch/opensearch_records.h"

#include "core/json_fields.h"
#include "core/sha256.h"
#include "core/url.h"

namespace muster::store {
namespace {

constexpr size_t kMaxIdBytes = 512;

// 2^44 changes of a shard and 2^19 elections and restarts.
constexpr int kSeqNoBits = 44;
constexpr int64_t kSeqNoMask = (int64_t{1} << kSeqNoBits) - 1;

int64_t MillisecondsOf(WallTime time) { return time.time_since_epoch().count(); }

void SetTimes(Json& fields, const std::optional<ServerClock::Times>& times) {
  fields["due"] = times ? Json(MillisecondsOf(times->due)) : Json();
  fields["ready"] = times ? Json(MillisecondsOf(times->ready)) : Json();
}

}  // namespace

int64_t DocumentVersion::Packed() const { return (primary_term << kSeqNoBits) | seq_no; }

DocumentVersion DocumentVersion::Unpack(int64_t version) {
  return {version & kSeqNoMask, version >> kSeqNoBits};
}

std::string DocumentId(std::string_view kind, std::string_view key) {
  std::string id = PercentEncode(kind) + "/" + std::string(key);
  if (id.size() <= kMaxIdBytes) return id;
  return "#" + Sha256Hex(id);  // no encoded kind starts like this
}

DocumentVersion VersionOf(const Json& found) {
  return {NumberIn(found, "_seq_no"), NumberIn(found, "_primary_term")};
}

Record RecordOf(const Json& found) {
  return RecordOf(MemberIn(found, "_source"), VersionOf(found));
}

Record RecordOf(const Json& source, DocumentVersion version) {
  Record record{.kind = TextIn(source, "kind"),
                .queue = TextIn(source, "queue"),
                .key = TextIn(source, "key"),
                .version = version.Packed(),
                .owner = TextIn(source, "owner"),
                .epoch = NumberIn(source, "epoch"),
                .attempt = static_cast<int>(NumberIn(source, "attempt")),
                .body = TextIn(source, "body")};
  if (const Json& due = MemberIn(source, "due"); due.is_number_integer()) {
    record.due = WallTime(milliseconds(due.get<int64_t>()));
  }
  return record;
}

Json NewDocument(const Record& record, std::optional<ServerClock::Times> times,
                 const std::string& write_id) {
  Json document{{"kind", record.kind}, {"queue", record.queue},
                {"key", record.key},   {"owner", record.owner},
                {"epoch", 0},          {"attempt", record.attempt},
                {"claim_id", ""},      {"write_id", write_id},
                {"body", record.body}};
  SetTimes(document, times);
  return document;
}

Json ChangedFields(const Change& change, std::optional<ServerClock::Times> times,
                   const std::string& write_id) {
  const Record& record = change.record;
  Json fields{{"owner", record.owner},
              {"attempt", record.attempt},
              {"write_id", write_id},
              {"body", record.body}};
  if (change.due.kind != Due::Kind::kUnchanged) SetTimes(fields, times);
  return fields;
}

}  // namespace muster::store
