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

// Responses and batches have megabytes, and come and go on many threads. From 1 MiB on they get
// pages of their own, which are returned at once: by default the C library raises that limit to the
// largest block that was ever freed, and then each thread's heap keeps what it once needed.
void ReturnLargeBlocks() { static_cast<void>(mallopt(M_MMAP_THRESHOLD, 1 << 20)); }

}  // namespace

int main(int argc, char** argv) {
  RaiseDescriptorLimit();
  ReportFileSizeLimit();
  ReturnLargeBlocks();
  return muster::cli::RunCli(argc, argv, std::cout, std::cerr, muster::RealEnv());
}
