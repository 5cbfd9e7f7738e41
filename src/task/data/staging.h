#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster::task {

// What a staging folder says of one object in it. The folder belongs to one migration of one
// tenant; an object lies in OBJECT.jsonl or OBJECT.parquet, and counts only once its manifest,
// OBJECT.manifest.json, is there: that is written last. The folder may be one in S3.
struct Manifest {
  std::string object = {};
  std::string file = {};    // its name in the folder
  std::string format = {};  // "jsonl" or "parquet"
  int64_t rows = 0;
  int64_t failed = 0;       // what the source could not give as a row: in OBJECT.failed.jsonl
  int64_t bytes = 0;        // of the file
  std::string sha256 = {};  // of the file
  std::string source = {};  // without passwords
  std::string tenant = {};
  std::string migration = {};
  std::string run = {};    // the incarnation; empty: an older version has staged it, or no run
  std::string token = {};  // of the call that has staged it
  // The type that DuckDB reads each column as.
  std::vector<std::pair<std::string, std::string>> columns = {};
};

class Parameters;
class StagingBucket;

// Whose objects count in a staging folder: a run before may have had the same name and folder.
struct StagingOwner {
  std::string run = {};   // the incarnation; empty: all count
  bool unmarked = false;  // those count as well that name no run
};

// One folder of staged objects, on this machine or in S3. What is in S3 is made, and read, in a
// folder on this machine that is gone with the last copy of this.
class Staging {
 public:
  // A path, or s3://BUCKET/PREFIX. kInvalid: it is neither.
  static Result<Staging> At(const std::string& folder, StagingOwner owner = {});

  // On this machine; an absolute path.
  const std::string& folder() const { return folder_; }
  const StagingOwner& owner() const { return owner_; }

  // What a person knows it by, with a slash at its end.
  std::string Place() const;

  // Where something of an object lies: PathOf("User", ".jsonl"). Names that are no file names are
  // percent-encoded.
  std::string PathOf(const std::string& object, const std::string& ending) const;

  // None: the object is not staged by the owner. kCorrupt: the manifest makes no sense.
  Result<std::optional<Manifest>> Find(const std::string& object) const;
  // The same, whichever run has staged it.
  Result<std::optional<Manifest>> FindAny(const std::string& object) const;
  // All that the owner has staged, by name.
  Result<std::vector<Manifest>> List() const;

  // Makes the folder, and room for an object: nobody finds it until Publish.
  Status Begin(const std::string& object) const;
  Status Publish(const Manifest& manifest) const;

  // Whether the object's file is there as its manifest says.
  Result<bool> IsWhole(const Manifest& manifest) const;
  // Its file lies in folder() afterwards.
  Status Bring(const Manifest& manifest) const;

  // What cannot be read of an object is kept, or there is none.
  Status KeepFailed(const std::string& object) const;

  // A file in folder() that is no object is kept, or was removed.
  Status Keep(const std::string& name) const;

 private:
  Staging(std::string folder, StagingOwner owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}
  bool IsOwn(const Manifest& manifest) const;
  Result<std::vector<Manifest>> ListAny() const;

  std::string folder_;
  StagingOwner owner_;
  std::shared_ptr<StagingBucket> bucket_;  // null: it is on this machine only
};

// The folder that the parameters of a call name: staging, folder, staging_run, staging_unmarked.
Result<Staging> StagingOf(const Parameters& parameters);

}  // namespace muster::task
