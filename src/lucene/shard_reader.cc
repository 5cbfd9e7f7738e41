#include "lucene/shard_reader.h"

#include <algorithm>

#include "lucene/live_docs.h"

namespace muster::lucene {

Result<ShardReader> ShardReader::Open(const ShardDirectory& directory) {
  ShardReader reader;
  MUSTER_ASSIGN(const std::vector<SegmentCommit> commits, ReadSegments(directory));
  for (const SegmentCommit& commit : commits) {
    MUSTER_ASSIGN(SegmentFiles files, SegmentFiles::Open(directory, commit));
    const auto max_doc = static_cast<uint64_t>(files.info().max_doc);
    reader.segments_.push_back({std::move(files), reader.end_});
    reader.end_ += max_doc;
  }
  return reader;
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
  if (open_ && open_->index == index) return {};
  // The old one first, so that two are never in memory.
  open_.reset();
  const SegmentFiles& files = segments_[index].files;
  MUSTER_ASSIGN(const std::vector<FieldInfo> fields, ReadFieldInfos(files));
  MUSTER_ASSIGN(StoredFields stored, StoredFields::Open(files));
  MUSTER_ASSIGN(std::optional<DocSet> live, ReadLiveDocs(files, fields));
  const NumberForm form = stored.number_form();
  open_ = std::make_unique<OpenSegment>(OpenSegment{index, std::move(stored),
                                                    DocumentFields::Find(fields), std::move(live),
                                                    form, files.origin(), Chunk(), std::nullopt});
  return {};
}

Result<bool> ShardReader::Next(Document& document) {
  while (next_ < end_) {
    MUSTER_TRY(OpenSegmentAt(next_));
    OpenSegment& segment = *open_;
    const auto doc = static_cast<uint32_t>(next_ - segments_[segment.index].base);
    const size_t chunk = segment.stored.ChunkOf(doc);
    if (segment.chunk_index != chunk) {
      // Set only when it was read, so that a failure cannot be read past.
      segment.chunk_index.reset();
      MUSTER_TRY(segment.stored.ReadChunk(chunk, segment.chunk));
      segment.chunk_index = chunk;
    }
    const uint64_t position = next_++;
    if (segment.live && !segment.live->Has(doc)) {
      ++counts_.deleted;
      continue;
    }
    const size_t in_chunk = doc - segment.chunk.first_doc();
    const auto has_id =
        ParseDocument(segment.chunk.Document(in_chunk), segment.chunk.FieldCount(in_chunk),
                      segment.fields, segment.form, segment.stored.order(), document);
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
