#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/byte_stream.h"

namespace muster {

struct FileEntry {
  std::string path;
  Compression compression = Compression::kNone;
  uint64_t size = 0;  // as it lies there, packed or not
};

struct FileCollection {
  std::string name;
  std::vector<FileEntry> files;  // by name
};

// The collections that a path stands for, by name:
//   a file    one, named by the file without its endings
//   a folder  one for each file in it, and one, named by the folder, for each folder in it
// In folders only files that end in one of `endings` (".jsonl", also with .gz or .zst after it)
// count, and nothing that begins with a dot. kNotFound: there is nothing. kInvalid: two files would
// be one collection, such as a.jsonl and a.jsonl.gz.
Result<std::vector<FileCollection>> ListFiles(const std::string& path,
                                              const std::vector<std::string_view>& endings);

// How large the file is. kNotFound, kPermission.
Result<FileEntry> StatFile(const std::string& path);

// The file's name without its folder and without one of the endings.
std::string FileStem(std::string_view path, const std::vector<std::string_view>& endings);

// Whether the name ends in one of them, perhaps compressed.
bool HasEnding(std::string_view path, const std::vector<std::string_view>& endings);

}  // namespace muster
