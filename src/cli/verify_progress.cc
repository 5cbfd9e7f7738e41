#include "cli/verify_progress.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/file.h"
#include "core/file_output.h"
#include "core/sha256.h"
#include "core/url.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxStateBytes = size_t{1} << 30;

}  // namespace

std::string VerifyStateFile(const std::string& folder, const ComparedSides& sides) {
  std::string identity;
  for (const std::string& part :
       {AbsoluteUrl(sides.source), AbsoluteUrl(sides.sink), sides.collections, sides.target,
        sides.transforms, sides.scripts, std::string(sides.checksums ? "contents" : "counts")}) {
    identity += part + '\0';
  }
  return folder + "/" + Sha256Hex(identity).substr(0, 32) + ".json";
}

Status RemoveVerifyState(const std::string& file) {
  if (file.empty() || std::remove(file.c_str()) == 0 || errno == ENOENT) return {};
  return FileError("remove", file, errno);
}

KeptProgress::KeptProgress(std::string file, Progress& progress, uint64_t before, Env& env)
    : file_(std::move(file)),
      progress_(progress),
      before_(before),
      env_(env),
      saved_(env.MonoNow()) {}

Result<std::string> KeptProgress::Load() const {
  std::error_code none;
  if (file_.empty() || !std::filesystem::exists(file_, none)) return std::string();
  return ReadFile(file_, kMaxStateBytes);
}

void KeptProgress::Advanced(int64_t documents) {
  progress_.Update(before_ + static_cast<uint64_t>(documents));
}

// It is large: not after each of many small partitions.
Status KeptProgress::Save(const std::function<std::string()>& state) {
  const MonoTime now = env_.MonoNow();
  if (file_.empty() || now - saved_ < std::chrono::seconds(1)) return {};
  saved_ = now;
  return ReplaceFile(file_, state(), FileAccess::kOwner);
}

}  // namespace muster::cli
