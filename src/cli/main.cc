#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>

#include "cli/cli.h"

namespace {

// The usual soft limit of 1024 exists for programs that cannot handle more. A file sink needs one
// per collection.
void RaiseDescriptorLimit() {
  constexpr rlim_t kEnough = 65'536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

// Makes a write beyond the file size limit (ulimit -f) fail, like one to a full disk.
void ReportFileSizeLimit() { static_cast<void>(signal(SIGXFSZ, SIG_IGN)); }

// Many threads allocate and free responses and batches of megabytes. From 1 MiB on these get pages
// of their own, which are returned at once. By default the C library raises that threshold to the
// largest block ever freed, and each thread's heap then keeps its peak.
void ReturnLargeBlocks() { static_cast<void>(mallopt(M_MMAP_THRESHOLD, 1 << 20)); }

}  // namespace

int main(int argc, char** argv) {
  RaiseDescriptorLimit();
  ReportFileSizeLimit();
  ReturnLargeBlocks();
  return muster::cli::RunCli(argc, argv, std::cout, std::cerr, muster::RealEnv());
}
