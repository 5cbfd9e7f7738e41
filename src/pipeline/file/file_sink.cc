#include "pipeline/file/file_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include "core/file.h"
#include "core/mutex.h"
#include "pipeline/file/file_list.h"
#include "pipeline/file/file_writer.h"
#include "pipeline/flow/item_fence.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr char kJoined[] = "/joined";

std::string_view EndingOf(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return ".gz";
    case Compression::kZstd:
      return ".zst";
    case Compression::kNone:
      break;
  }
  return "";
}

Result<Compression> CompressionParam(const Url& url, Compression by_name) {
  const auto text = url.Param("compress");
  if (!text) return by_name;
  if (*text == "gzip") return Compression::kGzip;
  if (*text == "zstd") return Compression::kZstd;
  return Error{Code::kInvalid, url.scheme + ": parameter 'compress' must be gzip or zstd"};
}

// The item's name without the run's.
std::string ItemName(const std::string& item, const std::string& run) {
  return item.starts_with(run + "/") ? item.substr(run.size() + 1) : item;
}

// In source order.
bool ComesBefore(const FileItem& a, const FileItem& b) {
  const auto key = [](const FileItem& item) {
    const auto name = WorkItemName::Parse(item.item.substr(item.item.rfind('/') + 1));
    return name ? std::tuple(name->collection, name->shard, name->position)
                : std::tuple(item.item, 0, std::string());
  };
  return key(a) < key(b);
}

}  // namespace

FileSink::FileSink(std::string path, bool is_folder, Compression compression,
                   std::unique_ptr<FileFormat> format, Env& env)
    : path_(std::move(path)),
      is_folder_(is_folder),
      compression_(compression),
      format_(std::move(format)),
      env_(env) {}

Result<std::unique_ptr<Sink>> FileSink::Open(const Url& url, std::unique_ptr<FileFormat> format,
                                             Env& env) {
  std::string path = url.path;
  if (path.empty()) return Error{Code::kInvalid, url.scheme + ": names no file or folder"};
  std::error_code failed;
  const bool is_folder =
      path.ends_with('/') || fs::is_directory(path, failed) || !HasEnding(path, format->Endings());
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  MUSTER_ASSIGN(const Compression compression, CompressionParam(url, CompressionOf(path)));
  if (!is_folder && compression != CompressionOf(path)) {
    return Error{Code::kInvalid, path + " does not end in " + std::string(EndingOf(compression)),
                 "the file's name determines its compression"};
  }
  return std::unique_ptr<Sink>(
      new FileSink(std::move(path), is_folder, compression, std::move(format), env));
}

std::string FileSink::OutputOf(const std::string& collection) const {
  return is_folder_ ? path_ + "/" + SafeFileName(collection) : path_;
}

std::string FileSink::StateFolderOf(const std::string& collection) const {
  if (is_folder_) return OutputOf(collection) + "/.muster";
  const fs::path path(path_);
  const fs::path folder = path.parent_path();
  return (folder / ("." + path.filename().string() + ".muster")).string();
}

Status FileSink::CheckCollection(const std::string& collection) {
  if (is_folder_) return {};
  const MutexLock lock(mutex_);
  if (only_collection_.empty()) only_collection_ = collection;
  if (only_collection_ == collection) return {};
  return Error{
      Code::kInvalid,
      "'" + only_collection_ + "' and '" + collection + "' cannot both go to the file " + path_,
      "name a folder, or leave all collections out but one"};
}

Result<std::vector<TargetChange>> FileSink::Prepare(const Collection& collection, bool evaluate) {
  MUSTER_TRY(CheckCollection(collection.name));
  const std::string output = OutputOf(collection.name);
  std::error_code failed;
  const bool is_there = fs::exists(output, failed);
  const std::string state_folder = StateFolderOf(collection.name);
  if (!evaluate) {
    fs::create_directories(state_folder, failed);
    if (failed) return FileError("create", state_folder, failed.value());
    MUSTER_TRY(FileSinkState::Mark(state_folder, env_));
    MUSTER_TRY(format_->Prepare(collection, state_folder));
  }
  if (is_there) return std::vector<TargetChange>();
  return std::vector<TargetChange>{
      {collection.name, (is_folder_ ? "create folder " : "create file ") + output}};
}

Result<std::string> FileSink::Identity(const std::string& collection) {
  const std::string state_folder = StateFolderOf(collection);
  std::error_code failed;
  if (!is_folder_ && fs::exists(state_folder + kJoined, failed) && !fs::exists(path_, failed)) {
    return FileError("find", path_, ENOENT);
  }
  return FileSinkState::IdentityOf(state_folder);
}

Result<std::unique_ptr<Writer>> FileSink::Open(const std::string& collection, const Fence& fence) {
  MUSTER_TRY(CheckCollection(collection));
  std::shared_ptr<FileSinkState> state;
  {
    const MutexLock lock(mutex_);
    std::shared_ptr<FileSinkState>& known = states_[collection];
    if (!known) {
      MUSTER_ASSIGN(known, FileSinkState::Open(StateFolderOf(collection), OutputOf(collection),
                                               fence, run_lock_, env_));
    }
    state = known;
  }
  FileWriterPlace place{.name = SafeFileName(ItemName(fence.item, fence.run)),
                        .output = {},
                        .has_header = is_folder_,
                        .compression = compression_};
  place.output = is_folder_ ? OutputOf(collection) + "/" + place.name +
                                  std::string(format_->Endings().front()) +
                                  std::string(EndingOf(compression_))
                            : state->folder() + "/" + place.name + ".done";
  MUSTER_ASSIGN(auto encoder, format_->NewEncoder(collection, *state));
  return FileWriter::Open(std::move(state), std::move(place), std::move(encoder), fence, env_);
}

Status FileSink::Finish(const std::string& collection) {
  std::shared_ptr<FileSinkState> state;
  {
    const MutexLock lock(mutex_);
    const auto known = states_.find(collection);
    if (known != states_.end()) state = known->second;
  }
  if (!state) {
    MUSTER_ASSIGN(state, FileSinkState::Existing(StateFolderOf(collection), env_));
    if (!state) return {};  // there were no items
  }
  {
    MUSTER_ASSIGN(const auto lock, state->Acquire());
    MUSTER_TRY(is_folder_ ? CheckOutputs(*state) : Join(collection, *state));
  }
  if (!state->alone()) return {};
  const MutexLock lock(mutex_);
  states_.erase(collection);
  return state->Remove();
}

// Published files must still exist.
Status FileSink::CheckOutputs(const FileSinkState& state) {
  MUSTER_ASSIGN(const std::vector<FileItem> items, state.LoadAll());
  std::error_code failed;
  for (const FileItem& item : items) {
    if (item.output.empty() || fs::exists(item.output, failed)) continue;
    return Error{Code::kIncompatible, item.output + " was removed after it was written",
                 kLostTargetHint};
  }
  return {};
}

// Joins all items into one file.
Status FileSink::Join(const std::string& collection, FileSinkState& state) {
  std::error_code failed;
  if (fs::exists(state.folder() + kJoined, failed)) return {};
  MUSTER_ASSIGN(std::vector<FileItem> items, state.LoadAll());
  std::sort(items.begin(), items.end(), ComesBefore);
  MUSTER_ASSIGN(const auto encoder, format_->NewEncoder(collection, state));
  MUSTER_ASSIGN(const std::string header, encoder->Header(nullptr));
  std::vector<FilePiece> pieces;
  if (!header.empty()) {
    const std::string path = state.folder() + "/header";
    fs::remove(path, failed);
    MUSTER_ASSIGN(const auto output, CreatePackedOutput(path, compression_));
    MUSTER_TRY(output->Append(header));
    MUSTER_ASSIGN(const uint64_t bytes, output->Flush());
    pieces.push_back({path, bytes});
  }
  for (const FileItem& item : items) {
    if (item.output.empty()) {
      return Error{Code::kConflict, item.item + " is not complete, so " + path_ + " is not either"};
    }
    const uintmax_t bytes = fs::file_size(item.output, failed);
    if (failed) return FileError("read", item.output, failed.value());
    pieces.push_back({item.output, bytes});
  }
  const std::string whole = state.folder() + "/whole";
  fs::remove(whole, failed);
  if (pieces.size() != 1) {
    MUSTER_TRY(JoinFiles(pieces, whole));
  } else if (link(pieces[0].path.c_str(), whole.c_str()) != 0) {
    return FileError("link", whole, errno);
  }
  MUSTER_TRY(PublishFile(whole, path_));
  MUSTER_TRY(ReplaceFile(state.folder() + kJoined, ""));
  for (const FilePiece& piece : pieces) fs::remove(piece.path, failed);
  return {};
}

}  // namespace muster::pipeline
