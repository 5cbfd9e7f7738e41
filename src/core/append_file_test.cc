#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/file.h"
#include "core/file_calls.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace muster {
namespace {

class AppendFileTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(std::string_view content) const { std::ofstream(path_, std::ios::binary) << content; }

  testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/lines";
};

TEST_F(AppendFileTest, FirstLineCreatesAPrivateFile) {
  AppendFile file(path_);
  EXPECT_TRUE(file.Sync());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file.Append("one"));
  ASSERT_TRUE(file.Append("two"));
  EXPECT_TRUE(file.Sync());
  EXPECT_EQ(Content(), "one\ntwo\n");
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(AppendFileTest, LineThatDoesNotFitIsRemoved) {
  AppendFile file(path_);
  ASSERT_TRUE(file.Append(std::string(60, 'a')));
  {
    const testing::SmallDisk disk(100);
    const Status refused = file.Append(std::string(60, 'b'));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFull);
    EXPECT_EQ(Content(), std::string(60, 'a') + "\n");
    EXPECT_TRUE(file.Append("short")) << "this one fits";
  }
  ASSERT_TRUE(file.Append(std::string(60, 'c')));
  EXPECT_EQ(Content(), std::string(60, 'a') + "\nshort\n" + std::string(60, 'c') + "\n");
}

TEST_F(AppendFileTest, PartialLineOfACrashIsTerminated) {
  Write("whole\nhal");
  AppendFile file(path_);
  ASSERT_TRUE(file.Append("next"));
  EXPECT_EQ(Content(), "whole\nhal\nnext\n");
  // Also if a killed process left it while the file is open.
  std::ofstream(path_, std::ios::app) << "torn";
  ASSERT_TRUE(file.Append("last"));
  EXPECT_EQ(Content(), "whole\nhal\nnext\ntorn\nlast\n");
}

TEST_F(AppendFileTest, PartialLineStaysIfTheDiskIsFull) {
  Write("whole\nhal");
  AppendFile file(path_);
  {
    const testing::SmallDisk disk(10);
    EXPECT_FALSE(file.Append("next"));
  }
  EXPECT_EQ(Content(), "whole\nhal");
  ASSERT_TRUE(file.Append("next"));
  EXPECT_EQ(Content(), "whole\nhal\nnext\n");
}

TEST_F(AppendFileTest, MovedFileIsCreatedAgain) {
  AppendFile file(path_);
  ASSERT_TRUE(file.Append("old"));
  std::filesystem::rename(path_, path_ + ".1");
  ASSERT_TRUE(file.Append("new"));
  EXPECT_TRUE(file.Sync());
  EXPECT_EQ(Content(), "new\n");
}

TEST_F(AppendFileTest, DeviceThatIsReplacedByAFileIsLeft) {
  ASSERT_EQ(symlink("/dev/full", path_.c_str()), 0);
  AppendFile file(path_);
  EXPECT_EQ(file.Append("lost").error().code, Code::kFull);
  std::filesystem::remove(path_);
  ASSERT_TRUE(file.Append("one"));
  EXPECT_EQ(Content(), "one\n");
}

TEST_F(AppendFileTest, OneProcessAtATimeMovesTheFile) {
  AppendFile file(path_);
  ASSERT_TRUE(file.Append("one"));
  ASSERT_TRUE(file.WhileLocked([&] {
    const int other = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_NE(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    std::filesystem::rename(path_, path_ + ".1");
  }));
  ASSERT_TRUE(file.Append("two"));
  EXPECT_EQ(Content(), "two\n");
}

TEST_F(AppendFileTest, ExistingLineIsNotAppendedAgain) {
  AppendFile file(path_);
  ASSERT_TRUE(file.Append("key", [] { return true; }));
  EXPECT_EQ(Content(), "");
  ASSERT_TRUE(file.Append("key", [] { return false; }));
  EXPECT_EQ(Content(), "key\n");
}

TEST_F(AppendFileTest, MissingFolderIsNamed) {
  AppendFile file(folder_.path() + "/no/such");
  const Status refused = file.Append("line");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_NE(refused.error().message.find("/no/such"), std::string::npos);
}

// Processes append lines of all lengths to one file on a disk that repeatedly fills up and is
// enlarged: every acknowledged line is there, complete, in each writer's order.
TEST_F(AppendFileTest, LinesOfSeveralProcessesNeverMixOnADiskThatFillsUp) {
  constexpr int kProcesses = 3;
  constexpr int kLines = 300;
  const auto line_of = [](int process, int number) {
    return std::to_string(process) + " " + std::to_string(number) + " " +
           std::string(static_cast<size_t>(number * 7 % 200), static_cast<char>('a' + process));
  };
  const auto work = [&](int process) {
    AppendFile file(path_);
    rlim_t size = 500;
    for (int number = 0; number < kLines;) {
      const testing::SmallDisk disk(size);
      const Status appended = file.Append(line_of(process, number));
      if (appended) ++number;
      if (!appended && appended.error().code != Code::kFull) return 1;
      if (!appended) size += 500;
    }
    return 0;
  };
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) _exit(work(process));
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::vector<int> next(kProcesses);
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    ASSERT_FALSE(line.empty());
    const int process = line[0] - '0';
    ASSERT_LT(static_cast<size_t>(process), next.size()) << line;
    EXPECT_EQ(line, line_of(process, next[static_cast<size_t>(process)]++));
  }
  EXPECT_EQ(next, std::vector<int>(kProcesses, kLines));
}

TEST_F(AppendFileTest, WaitsWhileAnotherProcessWritesALine) {
  Write("");
  const int other = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  std::atomic<bool> appended = false;
  std::thread appends([&] {
    AppendFile file(path_);
    EXPECT_TRUE(file.Append("ours"));
    appended = true;
  });
  ASSERT_EQ(write(other, "the", 3), 3);
  EXPECT_FALSE(appended);
  ASSERT_EQ(write(other, "irs\n", 4), 4);
  close(other);
  appends.join();
  EXPECT_EQ(Content(), "theirs\nours\n");
}

// A disk that fails syncs, and then has other bytes in place of those that were not synced.
class FailingDisk final : public FileCalls {
 public:
  int failures = 0;  // syncs to fail from now on
  int syncs = 0;

  int Open(const std::string& path, bool also_read) override {
    path_ = path;
    return real_.Open(path, also_read);
  }
  int Stat(const std::string& path, Info& info) override { return real_.Stat(path, info); }
  int Stat(int fd, Info& info) override { return real_.Stat(fd, info); }
  int TryLock(int fd) override { return real_.TryLock(fd); }
  void Unlock(int fd) override { real_.Unlock(fd); }
  int64_t Write(int fd, std::string_view bytes) override { return real_.Write(fd, bytes); }
  int OpenToRewrite(const std::string& path) override { return real_.OpenToRewrite(path); }
  int64_t WriteAt(int fd, std::string_view bytes, int64_t offset) override {
    return real_.WriteAt(fd, bytes, offset);
  }
  int64_t Read(int fd, char* to, size_t bytes, int64_t offset) override {
    return real_.Read(fd, to, bytes, offset);
  }
  int Truncate(int fd, int64_t size) override { return real_.Truncate(fd, size); }
  int Sync(int fd) override {
    ++syncs;
    Info info;
    EXPECT_EQ(real_.Stat(fd, info), 0);
    if (failures == 0) {
      synced_ = info.size;
      return real_.Sync(fd);
    }
    --failures;
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(synced_);
    file << std::string(static_cast<size_t>(info.size - synced_), '#');
    return -EIO;
  }
  int SyncFolderOf(const std::string& path) override { return real_.SyncFolderOf(path); }
  void Close(int fd) override { real_.Close(fd); }
  Env& env() override { return real_.env(); }

 private:
  FileCalls& real_ = SystemFileCalls();
  std::string path_;
  int64_t synced_ = 0;
};

TEST_F(AppendFileTest, LinesAreAppendedAgainAfterAFailedSync) {
  FailingDisk disk;
  AppendFile file(path_, disk);
  ASSERT_TRUE(file.Append("durable"));
  ASSERT_TRUE(file.Sync());
  ASSERT_TRUE(file.Append("one"));
  ASSERT_TRUE(file.Append("two"));
  disk.failures = 1;
  EXPECT_TRUE(file.Sync()) << "the second try succeeds";
  EXPECT_EQ(Content(), "durable\n########\n\none\ntwo\n");
  ASSERT_TRUE(file.Append("three"));
  ASSERT_TRUE(file.Sync());
  EXPECT_EQ(Content(), "durable\n########\n\none\ntwo\nthree\n");
}

TEST_F(AppendFileTest, NextCallRetriesAFailingDisk) {
  FailingDisk disk;
  AppendFile file(path_, disk);
  ASSERT_TRUE(file.Append("one"));
  disk.failures = 4;
  for (int i = 0; i < 2; ++i) {
    const Status synced = file.Sync();
    ASSERT_FALSE(synced);
    EXPECT_NE(synced.error().message.find(path_), std::string::npos) << synced.error().message;
  }
  EXPECT_FALSE(file.Append("two")) << "nothing is accepted before the first line is durable";
  EXPECT_EQ(disk.failures, 0);
  EXPECT_EQ(Content().size(), 4U) << "failed retries do not fill the disk";
  ASSERT_TRUE(file.Append("two"));
  ASSERT_TRUE(file.Sync());
  EXPECT_EQ(Content(), "####\n\none\ntwo\n");
}

TEST(MakePrivateFolders, MakesPrivateFoldersAndLeavesExistingOnesAlone) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(mkdir((folder.path() + "/old").c_str(), 0755), 0);
  ASSERT_EQ(chmod((folder.path() + "/old").c_str(), 0755), 0);
  ASSERT_TRUE(MakePrivateFolders(folder.path() + "/old/new/newer"));
  ASSERT_TRUE(MakePrivateFolders(folder.path() + "/old/new/newer"));
  const auto mode = [&](const std::string& name) {
    struct stat info {};
    EXPECT_EQ(stat((folder.path() + name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  };
  EXPECT_EQ(mode("/old"), 0755U);
  EXPECT_EQ(mode("/old/new"), 0700U);
  EXPECT_EQ(mode("/old/new/newer"), 0700U);
  folder.Write("file", "");
  EXPECT_FALSE(MakePrivateFolders(folder.path() + "/file"));
  EXPECT_FALSE(MakePrivateFolders(folder.path() + "/file/below"));
}

}  // namespace
}  // namespace muster
