#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/file_output.h"
#include "muster/result.h"
#include "pipeline/file/byte_stream.h"

namespace muster::pipeline {

// A new file, plain or compressed. kConflict: it exists.
Result<std::unique_ptr<FileOutput>> CreatePackedOutput(const std::string& path,
                                                       Compression compression);

// The first bytes of a file.
struct FilePiece {
  std::string path;
  uint64_t bytes = 0;  // from its beginning
};

// Concatenates the pieces into a file, durably, replacing any existing one.
Status JoinFiles(const std::vector<FilePiece>& pieces, const std::string& path);

}  // namespace muster::pipeline
