#include "lucene/shard_reader.h"

#include <algorithm>

#include "lucene/live_docs.h"

namespace muster::lucene {
namespace {

// The file that contains the documents, alone or among others.
const ShardFile* DataFile(const ShardDirectory& directory, const std::string& segment) {
  for (const char* suffix : {".fdt", ".cfs"}) {
    const auto found = directory.files().find(segment + suffix);
    if (found != directory.files().end()) return &found->second;
  }
  return nullptr;
}

// Segments never change except for deletions; but names are reused when a shard is recreated.
bool IsSame(const ShardDirectory& one, const SegmentCommit& a, const ShardDirectory& other,
            const SegmentCommit& b) {
  const ShardFile* const file_a = DataFile(one, a.name);
  const ShardFile* const file_b = DataFile(other, b.name);
  return a.name == b.name && a.id == b.id && file_a != nullptr && file_b != nullptr &&
         file_a->length == file_b->length && file_a->checksum == file_b->checksum &&
         (!a.id.empty() || file_a->blob == file_b->blob);
}

Result<DocSet> LiveDocs(const SegmentFiles& files) {
  MUSTER_ASSIGN(const std::vector<FieldInfo> fields, ReadFieldInfos(files));
  MUSTER_ASSIGN(std::optional<DocSet> live, ReadLiveDocs(files, fields));
  if (live) return *std::move(live);
  return DocSet(static_cast<uint32_t>(files.info().max_doc), true);
}

}  // namespace

Result<ShardReader> ShardReader::Open(const ShardDirectory& directory) {
  ShardReader reader;
  MUSTER_ASSIGN(const std::vector<SegmentCommit> commits, ReadSegments(directory));
  for (const SegmentCommit& commit : commits) {
    MUSTER_ASSIGN(SegmentFiles files, SegmentFiles::Open(directory, commit));
    const auto max_doc = static_cast<uint64_t>(files.info().max_doc);
    reader.segments_.push_back({std::move(files), reader.end_, std::nullopt});
    reader.end_ += max_doc;
  }
  return reader;
}

Result<ShardReader> ShardReader::OpenWithout(const ShardDirectory& directory,
                                             const ShardDirectory& other) {
  MUSTER_ASSIGN(ShardReader reader, Open(directory));
  reader.is_without_ = true;
  MUSTER_ASSIGN(const std::vector<SegmentCommit> commits, ReadSegments(other));
  for (Segment& segment : reader.segments_) {
    for (const SegmentCommit& commit : commits) {
      if (!IsSame(directory, segment.files.commit(), other, commit)) continue;
      MUSTER_ASSIGN(segment.other, SegmentFiles::Open(other, commit));
    }
  }
  return reader;
}

Result<bool> ShardReader::HasRouting() const {
  for (const Segment& segment : segments_) {
    MUSTER_ASSIGN(const std::vector<FieldInfo> fields, ReadFieldInfos(segment.files));
    if (DocumentFields::Find(fields).routing) return true;
  }
  return false;
}

std::vector<SegmentSummary> ShardReader::Segments() const {
  std::vector<SegmentSummary> summaries;
  for (const Segment& segment : segments_) {
    const SegmentCommit& commit = segment.files.commit();
    summaries.push_back({.name = commit.name,
                         .lucene_version = segment.files.info().lucene_version,
                         .documents = static_cast<uint64_t>(segment.files.info().max_doc),
                         .deleted = static_cast<uint64_t>(commit.delete_count +
                                                          std::max(commit.soft_delete_count, 0))});
  }
  return summaries;
}

Status ShardReader::OpenSegmentAt(uint64_t position) {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), position,
                       [](uint64_t wanted, const Segment& it) { return wanted < it.base; });
  const auto index = static_cast<size_t>(after - segments_.begin()) - 1;
  // Release the old one first, so that two are never in memory.
  open_.reset();
  const SegmentFiles& files = segments_[index].files;
  MUSTER_ASSIGN(const std::vector<FieldInfo> fields, ReadFieldInfos(files));
  MUSTER_ASSIGN(StoredFields stored, StoredFields::Open(files));
  MUSTER_ASSIGN(std::optional<DocSet> live, ReadLiveDocs(files, fields));
  if (const auto& other = segments_[index].other) {
    MUSTER_ASSIGN(const DocSet there, LiveDocs(*other));
    if (!live) live.emplace(static_cast<uint32_t>(files.info().max_doc), true);
    if (there.size() != live->size()) {
      return Error{Code::kCorrupt, files.origin() +
                                       ": it has another number of documents in the "
                                       "other snapshot"};
    }
    live->RemoveAll(there);
  }
  const NumberForm form = stored.number_form();
  const uint64_t begin = segments_[index].base;
  const uint64_t end = begin + static_cast<uint64_t>(files.info().max_doc);
  open_ = std::make_unique<OpenSegment>(OpenSegment{begin,
                                                    end,
                                                    std::move(stored),
                                                    DocumentFields::Find(fields),
                                                    std::move(live),
                                                    form,
                                                    files.origin(),
                                                    Chunk(),
                                                    {}});
  return OpenFields(files, fields, *open_);
}

Status ShardReader::OpenFields(const SegmentFiles& files, const std::vector<FieldInfo>& fields,
                               OpenSegment& segment) const {
  SegmentDocValues doc_values(files, fields);
  segment.doc_values.resize(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const FieldInfo& it) {
      return it.name == wanted_[i].name;
    });
    if (field == fields.end()) continue;
    if (wanted_[i].is_stored) {
      segment.fields.wanted[field->number] = i;
    } else {
      MUSTER_ASSIGN(segment.doc_values[i], doc_values.Open(*field));
    }
  }
  return {};
}

Result<bool> ShardReader::Parse(uint32_t doc, Document& document) {
  OpenSegment& segment = *open_;
  const size_t in_chunk = doc - segment.chunk.first_doc();
  document.fields.resize(wanted_.size());
  for (std::vector<IndexedValue>& values : document.fields) values.clear();
  MUSTER_ASSIGN(const bool has_id,
                ParseDocument(segment.chunk.Document(in_chunk), segment.chunk.FieldCount(in_chunk),
                              segment.fields, segment.form, segment.stored.order(), document));
  for (size_t i = 0; has_id && i < wanted_.size(); ++i) {
    if (segment.doc_values[i]) MUSTER_TRY(segment.doc_values[i]->Read(doc, document.fields[i]));
  }
  return has_id;
}

Result<bool> ShardReader::Next(Document& document) {
  while (next_ < end_) {
    if (!open_ || next_ < open_->begin || next_ >= open_->end) MUSTER_TRY(OpenSegmentAt(next_));
    OpenSegment& segment = *open_;
    const auto doc = static_cast<uint32_t>(next_ - segment.begin);
    // Unwanted documents are read only to verify the whole file.
    if (is_without_ && segment.live && !segment.live->Has(doc)) {
      ++counts_.deleted;
      ++next_;
      continue;
    }
    if (!segment.chunk.Holds(doc)) {
      // Empty on failure, so that no document is read after one.
      MUSTER_TRY(segment.stored.ReadChunk(segment.stored.ChunkOf(doc), segment.chunk));
    }
    const uint64_t position = next_++;
    if (segment.live && !segment.live->Has(doc)) {
      ++counts_.deleted;
      continue;
    }
    const auto has_id = Parse(doc, document);
    if (!has_id) {
      next_ = position;
      return has_id.error().Within(segment.place + ".fdt: document at position " +
                                   std::to_string(position));
    }
    if (!*has_id) {
      ++counts_.nested;
      continue;
    }
    document.position = position;
    ++counts_.documents;
    if (!document.source) ++counts_.without_source;
    return true;
  }
  return false;
}

}  // namespace muster::lucene
