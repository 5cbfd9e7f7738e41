#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Writes one new file. Errors name the file; after an error the object is unusable. kFull: no
// space. Used by one thread.
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
                                                     FileAccess access = FileAccess::kShared);

// Writes all bytes to an open file; `path` is for messages.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);

// Replaces a small file atomically and durably; after an error it is as it was. A symbolic link
// stays, and the file it points to is replaced. That keeps its mode, unless only its owner may read
// it. Anything but a regular file, such as a pipe, and files in /proc are written to directly.
Status ReplaceFile(const std::string& path, std::string_view content,
                   FileAccess access = FileAccess::kShared);

// Renames a file to its final name in the same folder, durably.
Status PublishFile(const std::string& from, const std::string& to);

// A file name for any text: unsafe characters are encoded, long names truncated and made unique
// with a hash.
std::string SafeFileName(const std::string& text);

}  // namespace muster
