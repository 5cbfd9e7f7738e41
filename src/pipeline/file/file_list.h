#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/file/byte_stream.h"

namespace muster::pipeline {

struct FileEntry {
  std::string path;
  Compression compression = Compression::kNone;
  uint64_t size = 0;  // on disk, compressed or not
};

struct FileCollection {
  std::string name;
  std::vector<FileEntry> files;  // by name
};

// The collections that a path stands for, by name:
//   a file    one, named after the file without its extensions
//   a folder  one per file in it, and one, named after the folder, per subfolder
// In folders, only files that end in one of `endings` (".jsonl", optionally followed by .gz or
// .zst) count, and nothing that begins with a dot. kNotFound: nothing found. kInvalid: two files
// would become the same collection, such as a.jsonl and a.jsonl.gz.
Result<std::vector<FileCollection>> ListFiles(const std::string& path,
                                              const std::vector<std::string_view>& endings);

// The file's size. kNotFound, kPermission.
Result<FileEntry> StatFile(const std::string& path);

// The file's name without its folder and its ending.
std::string FileStem(std::string_view path, const std::vector<std::string_view>& endings);

// Whether the name has one of the endings, optionally compressed.
bool HasEnding(std::string_view path, const std::vector<std::string_view>& endings);

}  // namespace muster::pipeline
