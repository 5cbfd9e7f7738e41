#include "replica/page_reader.h"

#include <gtest/gtest.h>

#include <memory>

#include "muster/env.h"

namespace muster::replica {
namespace {

constexpr int kLimit = 10;
constexpr size_t kBytes = 1024 * 1024;

class PageReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto log = events::OpenEventLog("memory:", {}, RealEnv());
    ASSERT_TRUE(log) << log.error().ToString();
    log_ = *std::move(log);
    for (int slot = 0; slot < log_->slots(); ++slot) start_.push_back({slot, 0});
  }

  void Append(int count) {
    for (int i = 0; i < count; ++i) {
      const events::StreamAppend one{
          "stream-" + std::to_string(appended_++), 0, {{"Happened", "{}"}}};
      ASSERT_TRUE(log_->Append({&one, 1}));
    }
  }

  std::vector<events::SlotPosition> After(int64_t position) const {
    std::vector<events::SlotPosition> slots = start_;
    for (events::SlotPosition& slot : slots) slot.position = position;
    return slots;
  }

  // The event positions of the page after these slots.
  static std::vector<int64_t> Read(PageReader& reader,
                                   const std::vector<events::SlotPosition>& from,
                                   int64_t* read_to = nullptr) {
    const auto page = reader.Read(from);
    EXPECT_TRUE(page);
    std::vector<int64_t> positions;
    for (const events::Event& event : page->events) positions.push_back(event.position);
    if (read_to != nullptr) *read_to = page->read_to;
    return positions;
  }

  std::unique_ptr<events::EventLog> log_;
  std::vector<events::SlotPosition> start_;
  int appended_ = 0;
};

TEST_F(PageReaderTest, ReadsTheSameAheadAsWithout) {
  Append(35);
  PageReader ahead(*log_, kLimit, kBytes, true);
  PageReader plain(*log_, kLimit, kBytes, false);
  int64_t at = 0;
  size_t read = 0;
  while (read < 35) {
    int64_t next = 0;
    const std::vector<int64_t> events = Read(ahead, After(at), &next);
    EXPECT_EQ(events, Read(plain, After(at)));
    ASSERT_FALSE(events.empty());
    read += events.size();
    at = next;
  }
  EXPECT_TRUE(Read(ahead, After(at)).empty());
}

TEST_F(PageReaderTest, ReadsAgainFromAnEarlierPosition) {
  Append(25);
  PageReader ahead(*log_, kLimit, kBytes, true);
  const std::vector<int64_t> first = Read(ahead, After(0));
  ASSERT_EQ(first.size(), kLimit);
  EXPECT_EQ(Read(ahead, After(0)), first);
}

TEST_F(PageReaderTest, ReadsEventsAppendedLater) {
  Append(kLimit);
  PageReader ahead(*log_, kLimit, kBytes, true);
  int64_t at = 0;
  ASSERT_EQ(Read(ahead, After(0), &at).size(), kLimit);
  EXPECT_TRUE(Read(ahead, After(at)).empty());
  Append(3);
  EXPECT_EQ(Read(ahead, After(at)).size(), 3);
}

TEST_F(PageReaderTest, PagesAreBoundedInBytes) {
  const std::string payload = "\"" + std::string(100'000, 'x') + "\"";
  for (int i = 0; i < 300; ++i) {
    const events::StreamAppend one{"stream-" + std::to_string(i), 0, {{"Happened", payload}}};
    ASSERT_TRUE(log_->Append({&one, 1}));
  }
  for (const bool ahead : {false, true}) {
    PageReader reader(*log_, 1'000, kBytes, ahead);
    int64_t at = 0;
    size_t read = 0;
    for (int page = 0; read < 300 && page < 300; ++page) {
      const size_t events = Read(reader, After(at), &at).size();
      // The first is small because the sizes are not known yet.
      EXPECT_LE(events, page == 0 ? 32u : 11u);
      read += events;
    }
    EXPECT_EQ(read, 300u);
  }
}

TEST_F(PageReaderTest, PagesGrowIfEventsAreSmall) {
  Append(5'000);
  PageReader reader(*log_, 1'000, kBytes, true);
  int64_t at = 0;
  std::vector<size_t> pages;
  for (size_t read = 0; read < 5'000 && pages.size() < 100; read += pages.back()) {
    pages.push_back(Read(reader, After(at), &at).size());
  }
  EXPECT_LE(pages.size(), 9u);
  EXPECT_EQ(*std::max_element(pages.begin(), pages.end()), 1'000u);
}

}  // namespace
}  // namespace muster::replica
