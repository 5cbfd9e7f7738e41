#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "muster/result.h"
#include "pipeline/file/byte_stream.h"

namespace muster::pipeline {

// Writes one new file, plain or compressed. Errors name the file; after an error the object is
// unusable. kFull: no space. Used by one thread.
class FileOutput {
 public:
  virtual ~FileOutput() = default;

  virtual Status Append(std::string_view bytes) = 0;

  // Makes everything durable and returns the file's length. Compressed output ends a member or
  // frame, so the file is complete up to this point.
  virtual Result<uint64_t> Flush() = 0;
};

// Who may read a new file: as the umask allows, or the owner only.
enum class FileAccess { kShared, kOwner };

// kConflict: the file exists.
Result<std::unique_ptr<FileOutput>> CreateFileOutput(const std::string& path,
                                                     Compression compression,
                                                     FileAccess access = FileAccess::kShared);

// The first bytes of a file.
struct FilePiece {
  std::string path;
  uint64_t bytes = 0;  // from its beginning
};

// Concatenates the pieces into a file, durably, replacing any existing one.
Status JoinFiles(const std::vector<FilePiece>& pieces, const std::string& path);

// Replaces a small file atomically and durably.
Status ReplaceFile(const std::string& path, std::string_view content);

// Renames a file to its final name in the same folder, durably.
Status PublishFile(const std::string& from, const std::string& to);

}  // namespace muster::pipeline
