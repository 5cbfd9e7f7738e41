#include "pipeline/file/file_list.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/file.h"

namespace muster::pipeline {
namespace {

namespace fs = std::filesystem;

Error Unreadable(const std::string& path, const std::error_code& reason) {
  return FileError("read", path, reason.value());
}

std::string_view WithoutCompression(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return path;
}

// All names in a folder except hidden ones, sorted.
Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  std::vector<std::string> names;
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (failed) return Unreadable(folder, failed);
  std::sort(names.begin(), names.end());
  return names;
}

// The files in a folder, recursively.
Status AddFilesBelow(const std::string& folder, const std::vector<std::string_view>& endings,
                     std::vector<FileEntry>& files) {
  MUSTER_ASSIGN(const auto names, NamesIn(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    std::error_code failed;
    if (fs::is_directory(path, failed)) {
      MUSTER_TRY(AddFilesBelow(path, endings, files));
    } else if (HasEnding(name, endings)) {
      MUSTER_ASSIGN(FileEntry file, StatFile(path));
      files.push_back(std::move(file));
    }
  }
  return {};
}

}  // namespace

bool HasEnding(std::string_view path, const std::vector<std::string_view>& endings) {
  const std::string_view bare = WithoutCompression(path);
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return bare.ends_with(ending); });
}

std::string FileStem(std::string_view path, const std::vector<std::string_view>& endings) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name = WithoutCompression(name);
  for (const std::string_view ending : endings) {
    if (name.ends_with(ending) && name.size() > ending.size()) {
      return std::string(name.substr(0, name.size() - ending.size()));
    }
  }
  return std::string(name);
}

Result<FileEntry> StatFile(const std::string& path) {
  std::error_code failed;
  const uintmax_t size = fs::file_size(path, failed);
  if (failed) return Unreadable(path, failed);
  return FileEntry{path, CompressionOf(path), size};
}

Result<std::vector<FileCollection>> ListFiles(const std::string& path,
                                              const std::vector<std::string_view>& endings) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    MUSTER_ASSIGN(FileEntry file, StatFile(path));
    return std::vector<FileCollection>{{FileStem(path, endings), {std::move(file)}}};
  }
  std::string root = path;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  MUSTER_ASSIGN(const auto names, NamesIn(root));
  std::map<std::string, FileCollection> found;
  for (const std::string& name : names) {
    const std::string full = root + "/" + name;
    FileCollection collection;
    if (fs::is_directory(full, failed)) {
      collection.name = name;
      MUSTER_TRY(AddFilesBelow(full, endings, collection.files));
      if (collection.files.empty()) continue;
    } else if (HasEnding(name, endings)) {
      collection.name = FileStem(name, endings);
      MUSTER_ASSIGN(FileEntry file, StatFile(full));
      collection.files.push_back(std::move(file));
    } else {
      continue;
    }
    const auto [earlier, is_new] = found.emplace(collection.name, collection);
    if (!is_new) {
      return Error{Code::kInvalid,
                   earlier->second.files[0].path + " and " + full + " are both the collection '" +
                       collection.name + "'",
                   "rename one, or move both into a folder " + collection.name};
    }
  }
  std::vector<FileCollection> all;
  for (auto& [name, collection] : found) all.push_back(std::move(collection));
  if (all.empty()) {
    std::string list;
    for (const auto ending : endings) list += (list.empty() ? "" : ", ") + std::string(ending);
    return Error{Code::kNotFound, root + " has no files that end in " + list};
  }
  return all;
}

}  // namespace muster::pipeline
