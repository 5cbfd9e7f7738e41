#include <linux/magic.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/schema_version.h"
#include "sql/sqlite.h"
#include "store/doctor/diagnose_backends.h"
#include "store/sqlite/sqlite_schema.h"

namespace muster::store {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kTooLittleBytes = kMiB;
constexpr uint64_t kLittleBytes = 256 * kMiB;
constexpr uint64_t kQuicklyCheckedBytes = 64 * kMiB;

std::string FolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

Status CheckWritable(const std::string& path, const std::string& what) {
  if (access(path.c_str(), R_OK | W_OK | (what == "folder" ? X_OK : 0)) == 0) return {};
  const std::string message = what + " " + path + ": " + std::strerror(errno);
  switch (errno) {
    case EROFS:
      return Error{Code::kReadOnly, message, "name a file on a writable disk"};
    case EACCES:
      return Error{Code::kPermission, message,
                   "grant this user read and write access, or name another file"};
    default:
      return Error{Code::kUnavailable, message,
                   "create the folder with mkdir -p, or name another file"};
  }
}

// Write-ahead logging shares memory between processes, which network file systems cannot do.
void DiagnoseFileSystem(const std::string& folder, Findings& findings) {
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) return;
  constexpr long kCifs = 0xFF534D42L;
  constexpr long kFuse = 0x65735546L;
  const auto type = static_cast<long>(static_cast<uint32_t>(info.f_type));
  switch (type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case kCifs:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
      findings.Fail("filesystem",
                    {Code::kUnavailable, "folder " + folder + " is on a network file system",
                     "SQLite needs a local disk; to share a store among machines use PostgreSQL"});
      break;
    case kFuse:
    case V9FS_MAGIC:
      findings.Warn("filesystem", "folder " + folder + " is on a shared or user-space file system",
                    "make sure that all processes run on one machine, or use PostgreSQL");
      break;
    default:
      findings.Ok("filesystem", "a local file system");
      break;
  }
}

void DiagnoseDisk(const std::string& folder, Findings& findings) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return;
  const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
  const std::string message = std::to_string(free_bytes / kMiB) + " MiB free in " + folder;
  if (free_bytes < kTooLittleBytes || (info.f_files > 0 && info.f_favail == 0)) {
    findings.Fail("disk", {Code::kFull, "disk full: " + message,
                           "free some disk space, then run the same command again"});
  } else if (free_bytes < kLittleBytes) {
    findings.Warn("disk", message, "free some disk space before a long run");
  } else {
    findings.Ok("disk", message);
  }
}

Status DiagnoseContent(sql::SqliteDb& db, const StoreUrl& url, uint64_t bytes, int& version,
                       Findings& findings) {
  if (bytes <= kQuicklyCheckedBytes) {
    MUSTER_ASSIGN(const std::string verdict, db.QueryText("PRAGMA quick_check(1)"));
    if (verdict != "ok") {
      return Error{Code::kCorrupt, "SQLite file " + url.target + ": " + verdict,
                   "restore the file from a backup, or move it away to start over"};
    }
    findings.Ok("integrity", "the file passes SQLite's quick check");
  }
  MUSTER_ASSIGN(version, SqliteSchemaVersion(db, url.space));
  return {};
}

// Diagnosing must not change any database. Without write-ahead logging that means
// opening it read-only; with it, a reader could not clean up the files it needs.
sql::SqliteDb::Mode ModeFor(const std::string& path) {
  constexpr size_t kWriteVersion = 18;  // in the file header; 2: write-ahead logging
  std::array<char, kWriteVersion + 1> header{};
  std::ifstream(path, std::ios::binary).read(header.data(), header.size());
  return header[kWriteVersion] == 2 ? sql::SqliteDb::Mode::kExisting
                                    : sql::SqliteDb::Mode::kReadOnly;
}

bool DiagnoseFile(const StoreUrl& url, uint64_t bytes, Findings& findings) {
  auto db = sql::SqliteDb::Open(url.target, ModeFor(url.target), std::chrono::seconds(2));
  if (!db) {
    findings.Fail("open", db.error());
    return false;
  }
  int version = 0;
  if (auto content = DiagnoseContent(**db, url, bytes, version, findings); !content) {
    findings.Fail("integrity", content.error());
    return false;
  }
  const std::string space = "namespace '" + url.space + "'";
  if (version == 0) {
    findings.Ok("schema", space + " does not exist yet: the first use creates it");
    return false;
  }
  if (version < kSqliteSchemaVersion) {
    findings.Ok("schema", space + " has version " + std::to_string(version) +
                              ": the first use migrates it to " +
                              std::to_string(kSqliteSchemaVersion));
    return false;
  }
  if (version > kSqliteSchemaVersion) {
    findings.Fail("schema",
                  NewerSchema("", "namespace '" + url.space + "'", version, kSqliteSchemaVersion));
    return false;
  }
  findings.Ok("schema", space + " has version " + std::to_string(version));
  return true;
}

}  // namespace

bool DiagnoseSqlite(const StoreUrl& url, Findings& findings) {
  findings.Ok("version", std::string("SQLite ") + sqlite3_libversion());
  const std::string folder = FolderOf(url.target);
  if (auto writable = CheckWritable(folder, "folder"); !writable) {
    findings.Fail("folder", writable.error());
    return false;
  }
  findings.Ok("folder", "folder " + folder + " can be written to");
  DiagnoseFileSystem(folder, findings);
  DiagnoseDisk(folder, findings);
  struct stat file {};
  if (stat(url.target.c_str(), &file) != 0) {
    findings.Ok("file", url.target + " does not exist yet: the first use creates it");
    return false;
  }
  if (auto writable = CheckWritable(url.target, "file"); !writable) {
    findings.Fail("file", writable.error());
    return false;
  }
  const auto bytes = static_cast<uint64_t>(file.st_size);
  findings.Ok("file", url.target + ", " + std::to_string(bytes / 1024) + " KiB");
  return DiagnoseFile(url, bytes, findings);
}

}  // namespace muster::store
