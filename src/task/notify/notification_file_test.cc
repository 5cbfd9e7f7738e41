#include "task/notify/notification_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fstream>

#include "support/temporary_folder.h"

namespace muster::task {
namespace {

// The system's calls, but for fsync. As in Linux, a failed fsync leaves the page clean: what it
// held is not written by the next one, unless it is written to again.
class FailingSync final : public FileCalls {
 public:
  int Open(const std::string& path, bool also_read) override {
    return calls_.Open(path, also_read);
  }
  int Stat(const std::string& path, Info& info) override { return calls_.Stat(path, info); }
  int Stat(int fd, Info& info) override { return calls_.Stat(fd, info); }
  int TryLock(int fd) override { return calls_.TryLock(fd); }
  void Unlock(int fd) override { calls_.Unlock(fd); }
  int64_t Write(int fd, std::string_view bytes) override { return calls_.Write(fd, bytes); }
  int OpenToRewrite(const std::string& path) override { return calls_.OpenToRewrite(path); }
  int64_t WriteAt(int fd, std::string_view bytes, int64_t offset) override {
    return calls_.WriteAt(fd, bytes, offset);
  }
  int64_t Read(int fd, char* to, size_t bytes, int64_t offset) override {
    return calls_.Read(fd, to, bytes, offset);
  }
  int Truncate(int fd, int64_t size) override { return calls_.Truncate(fd, size); }
  int Sync(int fd) override {
    if (failures > 0) {
      --failures;
      // From here on, a page is dirty if the file was modified later than this.
      const std::array<timespec, 2> past{timespec{0, UTIME_OMIT}, timespec{kClean, 0}};
      futimens(fd, past.data());
      return -EIO;
    }
    struct stat info {};
    fstat(fd, &info);
    if (info.st_mtim.tv_sec != kClean) durable = true;
    return calls_.Sync(fd);
  }
  int SyncFolderOf(const std::string& path) override { return calls_.SyncFolderOf(path); }
  void Close(int fd) override { calls_.Close(fd); }
  Env& env() override { return calls_.env(); }

  int failures = 0;
  bool durable = false;

 private:
  static constexpr time_t kClean = 1'000;
  FileCalls& calls_ = SystemFileCalls();
};

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NotificationFileTest, ALineIsAcknowledgedOnlyOnceItIsOnDisk) {
  const muster::testing::TemporaryFolder folder;
  const std::string path = folder.At("news.jsonl");
  const Notification news{.target = "file:" + path,
                          .subject = "it failed",
                          .message = Json{{"rank", 600}},
                          .dedupe = "m-1/600/User",
                          .topic = {}};
  FailingSync calls;
  calls.failures = 3;  // of the line, of its repetition, and of the second delivery
  EXPECT_FALSE(AppendNotification(path, news, calls).has_value());
  EXPECT_FALSE(AppendNotification(path, news, calls).has_value()) << "the key is there";
  EXPECT_FALSE(calls.durable);
  EXPECT_TRUE(AppendNotification(path, news, calls).has_value());
  EXPECT_TRUE(calls.durable) << "synced, but the line was not written again";
  EXPECT_EQ(ContentOf(path), news.Line() + "\n");
}

TEST(NotificationFileTest, OtherLinesStayAsTheyAre) {
  const muster::testing::TemporaryFolder folder;
  const std::string path = folder.At("news.jsonl");
  std::ofstream(path) << "{\"dedupe\":\"a\",\"torn\n";
  Notification news{.target = {}, .subject = "s", .message = 1, .dedupe = "a", .topic = {}};
  for (const char* key : {"a", "b", "a", "b"}) {
    news.dedupe = key;
    ASSERT_TRUE(AppendNotification(path, news).has_value());
  }
  EXPECT_EQ(ContentOf(path),
            "{\"dedupe\":\"a\",\"torn\n"
            "{\"dedupe\":\"a\",\"subject\":\"s\",\"message\":1}\n"
            "{\"dedupe\":\"b\",\"subject\":\"s\",\"message\":1}\n");
}

}  // namespace
}  // namespace muster::task
