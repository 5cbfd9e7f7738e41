#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/result.h"

namespace muster::task {

// Describes one object in a staging folder. The folder belongs to one migration of one tenant; an
// object is OBJECT.jsonl or OBJECT.parquet, and counts only once its manifest,
// OBJECT.manifest.json, exists: that is written last. The folder may be in S3.
struct Manifest {
  std::string object = {};
  std::string file = {};    // its name in the folder
  std::string format = {};  // "jsonl" or "parquet"
  int64_t rows = 0;
  int64_t failed = 0;       // unreadable rows, which are in unreadable/OBJECT.jsonl
  int64_t bytes = 0;        // of the file
  std::string sha256 = {};  // of the file
  std::string source = {};  // without passwords
  std::string tenant = {};
  std::string migration = {};
  std::string run = {};    // the incarnation; empty: staged by an older version, or without a run
  std::string token = {};  // of the call that staged it
  // The type that DuckDB reads each column as.
  std::vector<std::pair<std::string, std::string>> columns = {};
};

class Parameters;
class StagingBucket;

// Whose objects count in a staging folder: an earlier run may have had the same name and folder.
struct StagingOwner {
  std::string run = {};   // the incarnation; empty: all count
  bool unmarked = false;  // objects that name no run count as well
};

// A folder of staged objects, on this machine or in S3. Files for S3 are made, and read, in a local
// folder that is removed with the last copy of this object.
class Staging {
 public:
  // A path, or s3://BUCKET/PREFIX. kInvalid: neither.
  static Result<Staging> At(const std::string& folder, StagingOwner owner = {});

  // On this machine; an absolute path.
  const std::string& folder() const { return folder_; }
  const StagingOwner& owner() const { return owner_; }

  // For display, with a trailing slash.
  std::string Place() const;

  // The path of a file of an object: PathOf("User", ".jsonl"). Names that cannot be file names are
  // percent-encoded.
  std::string PathOf(const std::string& object, const std::string& ending) const;

  // Where an unfinished copy of an object is made, on this machine. It outlives this process, so
  // that the copy can be resumed.
  Result<std::string> CopyFolder(const std::string& object) const;

  // None: the owner has not staged it. kCorrupt: the manifest is damaged.
  Result<std::optional<Manifest>> Find(const std::string& object) const;
  // The same, whichever run staged it.
  Result<std::optional<Manifest>> FindAny(const std::string& object) const;
  // All objects the owner has staged, by name.
  Result<std::vector<Manifest>> List() const;

  // Creates the folder and removes the object's manifest: until Publish it is not staged.
  Status Begin(const std::string& object) const;
  Status Publish(const Manifest& manifest) const;
  // Removes files of an object that were never completed.
  void RemovePartial(const std::string& object) const;

  // Whether the object's file exists with the size in its manifest.
  Result<bool> IsWhole(const Manifest& manifest) const;
  // Downloads its file to folder(), if necessary.
  Status Bring(const Manifest& manifest) const;

  // Where the unreadable rows of an object are listed: a file in a folder of their own, since every
  // name beside the objects may be that of another object.
  std::string UnreadableName(const std::string& object) const;  // within folder()
  std::string UnreadablePath(const std::string& object) const;
  // Uploads it; if the folder has none, removes the one in the bucket.
  Status KeepFailed(const std::string& object) const;

  // The same for any file in folder() that is not an object.
  Status Keep(const std::string& name) const;

 private:
  Staging(std::string folder, StagingOwner owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}
  bool IsOwn(const Manifest& manifest) const;
  Result<std::vector<Manifest>> ListAny() const;

  std::string folder_;
  StagingOwner owner_;
  std::shared_ptr<StagingBucket> bucket_;  // null: on this machine
};

// The folder given by the parameters staging, folder, staging_run and staging_unmarked of a call.
Result<Staging> StagingOf(const Parameters& parameters);

}  // namespace muster::task
