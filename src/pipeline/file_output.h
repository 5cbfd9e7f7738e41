#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "muster/result.h"
#include "pipeline/byte_stream.h"

namespace muster {

// Writes one new file, plain or compressed. Errors name the file; after one it is of no use any
// more. kFull: no room. Used by one thread.
class FileOutput {
 public:
  virtual ~FileOutput() = default;

  virtual Status Append(std::string_view bytes) = 0;

  // Makes everything durable; what is compressed ends a member or frame here, so that the file up
  // to here is complete. The answer is its length.
  virtual Result<uint64_t> Flush() = 0;
};

// Who may read a new file: all that the umask lets, or its owner alone.
enum class FileAccess { kShared, kOwner };

// kConflict: the file exists.
Result<std::unique_ptr<FileOutput>> CreateFileOutput(const std::string& path,
                                                     Compression compression,
                                                     FileAccess access = FileAccess::kShared);

// One piece of a file.
struct FilePiece {
  std::string path;
  uint64_t bytes = 0;  // from its beginning
};

// Writes the pieces one after another into a new file, durably. What is there already is replaced.
Status JoinFiles(const std::vector<FilePiece>& pieces, const std::string& path);

// Replaces a small file as a whole, durably: afterwards it has the old or the new content, whatever
// happens.
Status ReplaceFile(const std::string& path, std::string_view content);

// Gives a file its name for good, and makes that durable. The folder is the same for both.
Status PublishFile(const std::string& from, const std::string& to);

}  // namespace muster
