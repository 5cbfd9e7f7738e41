#include "sql/sqlite_holder.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace muster::sql {
namespace {

// The byte of the shared-memory file that a writer locks: WAL_WRITE_LOCK after WALINDEX_LOCK_OFFSET
// in SQLite's file format.
constexpr int64_t kWriteLock = 120;

// "(name, which is stopped)", from /proc/PID/stat: "4711 (name) T …".
std::string About(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close + 2 >= stat.size()) return "";
  const bool stopped = stat[close + 2] == 'T' || stat[close + 2] == 't';
  return " (" + stat.substr(open + 1, close - open - 1) + (stopped ? ", which is stopped)" : ")");
}

}  // namespace

std::string SqliteLockHolder(const std::string& path) {
  struct stat shared {};
  if (stat((path + "-shm").c_str(), &shared) != 0) return "";
  std::ostringstream wanted;
  wanted << std::hex;
  for (const unsigned part : {major(shared.st_dev), minor(shared.st_dev)}) {
    wanted.width(2);
    wanted.fill('0');
    wanted << part << ':';
  }
  wanted << std::dec << shared.st_ino;
  // 1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, file, end;
    int64_t pid = 0;
    int64_t begin = -1;
    words >> number >> kind >> advisory >> access >> pid >> file >> begin >> end;
    if (!words || kind == "->" || access != "WRITE" || file != wanted.str()) continue;
    const int64_t last = end == "EOF" ? kWriteLock : std::atoll(end.c_str());
    if (begin > kWriteLock || last < kWriteLock || pid == getpid()) continue;
    return "process " + std::to_string(pid) + About(pid);
  }
  return "";
}

}  // namespace muster::sql
