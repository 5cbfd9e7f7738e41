#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/blobs.h"
#include "lucene/shard_directory.h"

namespace muster::fuzz {

// Files of a shard as one string: names and contents, each preceded by its length in four bytes.
// Any bytes can be parsed as a bundle; a truncated entry ends it.
using Bundle = std::map<std::string, std::string>;

Bundle Unbundle(std::string_view bytes);
std::string ToBytes(const Bundle& bundle);

// The files of a bundle as those of a shard. Refers to the bundle.
class BundleBlobs : public lucene::Blobs {
 public:
  explicit BundleBlobs(const Bundle& bundle) : bundle_(bundle) {}

  const std::string& name() const override { return name_; }
  uint64_t read_ahead() const override { return 4096; }
  Result<std::vector<std::string>> ListRoot() const override { return std::vector<std::string>{}; }
  Result<uint64_t> Size(const std::string& path) const override { return bundle_.at(path).size(); }
  Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                  std::string& into) const override;

 private:
  const Bundle& bundle_;
  const std::string name_ = "bundle";
};

// Refers to the blobs.
Result<lucene::ShardDirectory> OpenBundle(const Bundle& bundle, const BundleBlobs& blobs);

// Corrects the CRC of every file, also of those inside compound files.
void FixCrcs(Bundle& bundle);

// The file with a correct CRC, if it has a footer: otherwise random changes would never get past
// the check.
std::string WithRightCrc(std::string_view file);

}  // namespace muster::fuzz
