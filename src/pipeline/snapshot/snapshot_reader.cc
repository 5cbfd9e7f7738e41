#include "pipeline/snapshot/snapshot_reader.h"

#include <charconv>

namespace muster::pipeline {
namespace {

constexpr uint64_t kWorthSplitting = 2'000;
// Digits of the largest signed number; a shard has at most some 2 billion documents.
constexpr size_t kDigits = 19;

bool IsJsonObject(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

}  // namespace

std::string SnapshotPosition(uint64_t number) {
  std::string text;
  PutSnapshotPosition(number, text);
  return text;
}

void PutSnapshotPosition(uint64_t number, std::string& text) {
  text.assign(kDigits, '0');
  for (size_t i = kDigits; i > 0 && number > 0; number /= 10) {
    text[--i] = static_cast<char>('0' + number % 10);
  }
}

Result<uint64_t> SnapshotNumber(const std::string& position, uint64_t if_empty) {
  if (position.empty()) return if_empty;
  uint64_t number = 0;
  const char* const end = position.data() + position.size();
  const auto [stop, problem] = std::from_chars(position.data(), end, number);
  if (problem != std::errc() || stop != end) {
    return Error{Code::kInvalid, "'" + position + "' is not a position in a snapshot",
                 "check that the source is the one the run was started with"};
  }
  return number;
}

Result<std::unique_ptr<Reader>> SnapshotReader::Open(std::vector<SnapshotLeg> legs,
                                                     const Partition& partition,
                                                     const std::string& position,
                                                     SnapshotChoice choice) {
  uint64_t end = 0;
  for (const SnapshotLeg& leg : legs) end += leg.end;
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(std::move(legs), std::move(choice)));
  MUSTER_ASSIGN(const uint64_t begin, SnapshotNumber(partition.begin, 0));
  MUSTER_ASSIGN(reader->next_, SnapshotNumber(position, begin));
  MUSTER_ASSIGN(reader->end_, SnapshotNumber(partition.end, end));
  return reader;
}

Status SnapshotReader::OpenLegAt(uint64_t position) {
  while (leg_ < legs_.size() && position - base_ >= legs_[leg_].end) {
    shard_.reset();
    base_ += legs_[leg_].end;
    ++leg_;
  }
  if (shard_ || leg_ == legs_.size()) return {};
  const SnapshotLeg& leg = legs_[leg_];
  if (leg.without != nullptr) {
    MUSTER_ASSIGN(shard_, lucene::ShardReader::OpenWithout(*leg.directory, *leg.without));
  } else {
    MUSTER_ASSIGN(shard_, lucene::ShardReader::Open(*leg.directory));
  }
  builder_.reset();
  if (leg.rebuild) {
    builder_.emplace(leg.rebuild);
    shard_->ReadFields(builder_->Wanted());
  }
  shard_->Seek(position - base_);
  return {};
}

Result<std::optional<Document>> SnapshotReader::Next() {
  while (next_ < end_) {
    MUSTER_TRY(OpenLegAt(next_));
    if (leg_ == legs_.size()) break;
    const SnapshotLeg& leg = legs_[leg_];
    MUSTER_ASSIGN(const bool found, shard_->Next(found_));
    if (found && base_ + found_.position >= end_) break;
    next_ = base_ + (found ? found_.position + 1 : leg.end);
    if (found && IsChosen()) return DocumentOf(leg);
  }
  next_ = end_;
  return std::nullopt;
}

// Since Elasticsearch 6 there is a single type, and it is not recorded.
bool SnapshotReader::IsChosen() const {
  return choice_.type.empty() || found_.type.empty() || found_.type == choice_.type;
}

bool SnapshotReader::Complete(Document& document) {
  if (choice_.recovery_source && found_.recovery_source) {
    document.body = *found_.recovery_source;
    return true;
  }
  // One that is not JSON is refused as it is.
  if (!builder_ || (found_.source && !IsJsonObject(*found_.source))) return false;
  const auto built = builder_->Build(found_.fields, found_.source.value_or(""));
  if (built) {
    document.body = *built;
  } else {
    defect_ = "its _source cannot be rebuilt: " + built.error().message;
    document.defect = defect_;
  }
  return built.has_value();
}

Document SnapshotReader::DocumentOf(const SnapshotLeg& leg) {
  PutSnapshotPosition(next_, position_);
  Document document{.id = found_.id,
                    .routing = found_.routing.value_or(""),
                    .body = found_.source.value_or(""),
                    .position = position_,
                    .defect = {},
                    .deleted = leg.deletes,
                    .version = leg.version};
  const bool is_complete = Complete(document);
  if (leg.deletes) {
    // Only its id matters for a delete.
    if (!IsJsonObject(document.body)) document.body = "{}";
    document.defect = {};
  } else if (!document.defect.empty()) {
    // It could not be rebuilt.
  } else if (document.body.empty()) {
    document.defect = found_.recovery_source && !choice_.recovery_source
                          ? "the index has no _source for it; recovery_source=true uses the copy "
                            "kept for recovery"
                          : "the index has no _source for it";
  } else if (choice_.is_pruned && !choice_.pruned_source && !is_complete) {
    document.defect = "its _source lacks fields, and no copy for recovery is left";
  } else if (!IsJsonObject(document.body)) {
    document.defect = "its _source is not JSON (but SMILE, CBOR or YAML)";
  }
  if (!choice_.type_field.empty()) type_field_.Apply(found_.type, document);
  return document;
}

Result<std::optional<std::string>> SnapshotReader::Split() {
  // The first leg must be finished before the next begins.
  if (legs_.size() > 1 || end_ - next_ < kWorthSplitting) return std::nullopt;
  end_ = next_ + (end_ - next_) / 2;
  return SnapshotPosition(end_);
}

}  // namespace muster::pipeline
