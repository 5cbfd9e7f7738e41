#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "net/s3.h"

namespace muster::lucene {

// The blobs of a snapshot repository: a folder or a bucket. Read-only.
//
// Paths are relative to the repository, with '/'; one that begins with '/' is relative to the root
// of its bucket. Thread-safe.
class Blobs {
 public:
  virtual ~Blobs() = default;

  // The repository's name for messages.
  virtual const std::string& name() const = 0;

  // The repository's path in its bucket: empty, or ending in a slash.
  virtual std::string base_path() const { return ""; }

  // How many bytes to fetch per call when reading a file sequentially.
  virtual uint64_t read_ahead() const = 0;

  // The names of the blobs directly in the repository's root, in any order.
  virtual Result<std::vector<std::string>> ListRoot() const = 0;

  // The size of a blob; kNotFound if it does not exist.
  virtual Result<uint64_t> Size(const std::string& path) const = 0;

  // Exactly the bytes [offset, offset + length) of a blob, replacing the content of `into` and
  // reusing its memory; kCorrupt if the blob is shorter.
  virtual Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                          std::string& into) const = 0;
};

// A repository in the file system. kNotFound when `folder` is not a folder.
Result<std::unique_ptr<Blobs>> OpenFolder(const std::string& folder);

// A repository in a bucket. Makes no request before the first call. `env` must outlive it.
std::unique_ptr<Blobs> OpenBucket(const net::S3Location& location, Env& env);

// A whole blob, of at most `max_bytes`.
Result<std::string> ReadWhole(const Blobs& blobs, const std::string& path, uint64_t max_bytes);

}  // namespace muster::lucene
