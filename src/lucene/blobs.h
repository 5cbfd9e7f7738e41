#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/s3.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::lucene {

// Where a snapshot repository keeps its blobs: a folder, or a bucket. Reads only.
//
// Paths are relative to the repository, with '/'; one that begins with '/' is relative to what
// holds the repository's base path: the root of its bucket. Any number of threads may use one.
class Blobs {
 public:
  virtual ~Blobs() = default;

  // What a person knows the repository by.
  virtual const std::string& name() const = 0;

  // Where the repository lies in its bucket: empty, or with a slash at its end.
  virtual std::string base_path() const { return ""; }

  // How many bytes of a file that is read from one end to the other are worth one call.
  virtual uint64_t read_ahead() const = 0;

  // The names of the blobs directly in the repository's root, in any order.
  virtual Result<std::vector<std::string>> ListRoot() const = 0;

  // Bytes in a blob; kNotFound when there is no such blob.
  virtual Result<uint64_t> Size(const std::string& path) const = 0;

  // Exactly the bytes [offset, offset + length) of a blob, in place of what `into` held, whose
  // memory is used again; kCorrupt when the blob ends before.
  virtual Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                          std::string& into) const = 0;
};

// A repository in the file system. kNotFound when `folder` is not a folder.
Result<std::unique_ptr<Blobs>> OpenFolder(const std::string& folder);

// A repository in a bucket. Nothing is asked for before the first call. `env` must outlive it.
std::unique_ptr<Blobs> OpenBucket(const S3Location& location, Env& env);

// A whole blob, of at most `max_bytes`.
Result<std::string> ReadWhole(const Blobs& blobs, const std::string& path, uint64_t max_bytes);

}  // namespace muster::lucene
