#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lucene/codec.h"
#include "lucene/segments.h"
#include "lucene/shard_directory.h"

namespace muster::lucene {

struct CompoundEntry {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Parses `.cfe`: the locations of files inside `.cfs`, by name without the segment's.
Result<std::map<std::string, CompoundEntry>> ParseCompoundEntries(std::string_view file,
                                                                  std::string_view segment_id,
                                                                  std::string_view origin);

// The files of one segment, inside a compound file or not. Refers to the directory, which must
// outlive it.
class SegmentFiles {
 public:
  static Result<SegmentFiles> Open(const ShardDirectory& directory, const SegmentCommit& commit);

  const SegmentCommit& commit() const { return commit_; }
  const SegmentInfo& info() const { return info_; }
  // The segment's name for messages.
  std::string origin() const { return directory_->origin() + " " + commit_.name; }

  // By name without the segment's: ".fdt", "_Lucene90_0.dvd", "_3.liv". Files with a generation are
  // beside the compound file, never in it, so they are looked up there first.
  Result<ShardFileView> Find(const std::string& suffix) const;

 private:
  const ShardDirectory* directory_ = nullptr;
  SegmentCommit commit_;
  SegmentInfo info_;
  std::map<std::string, CompoundEntry> compound_;
};

// A file that was read whole, with its header. `content` ends before the footer.
struct OpenedFile {
  std::string bytes;
  CodecHeader header;
  size_t body = 0;  // where it starts, after the header
  size_t end = 0;   // where it ends, before the footer

  // A reader for the body. Refers to this and to `origin`.
  ByteReader Reader(std::string_view origin) const;
};

// Reads a whole file of Lucene 5 or later: CRC, index header and segment id are checked.
Result<OpenedFile> OpenChecked(const ShardFileView& file, std::string_view segment_id);

}  // namespace muster::lucene
