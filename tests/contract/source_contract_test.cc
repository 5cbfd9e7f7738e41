// The promises of Source and Reader in muster/pipeline.h, checked on every source: one test per
// promise.

#include <gtest/gtest.h>

#include <algorithm>

#include "contract/sources.h"
#include "core/json.h"
#include "muster/pipeline.h"

namespace muster::testing {
namespace {

constexpr int kDocuments = SourceUnderTest::kDocuments;

struct ReadDocument {
  std::string name;
  std::string position;
};
using Documents = std::vector<ReadDocument>;

std::vector<std::string> NamesOf(const Documents& documents) {
  std::vector<std::string> names;
  for (const ReadDocument& document : documents) names.push_back(document.name);
  return names;
}

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

// A server estimates sizes, and may do so anew at any time.
std::vector<pipeline::Partition> WithoutSizes(std::vector<pipeline::Partition> partitions) {
  for (pipeline::Partition& partition : partitions) {
    partition.documents.reset();
    partition.bytes.reset();
  }
  return partitions;
}

class SourceContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    under_test_ = NewSource(GetParam(), &reason);
    if (under_test_ == nullptr) GTEST_SKIP() << GetParam() << " is not available: " << reason;
    source_ = under_test_->Open();
    const auto collections = source_->Collections();
    ASSERT_TRUE(collections) << collections.error().ToString();
    ASSERT_EQ(collections->size(), 1);
    collection_ = collections->front().name;
    const auto partitions = source_->Partitions(collection_);
    ASSERT_TRUE(partitions) << partitions.error().ToString();
    partitions_ = *partitions;
  }

  static std::unique_ptr<pipeline::Reader> Open(pipeline::Source& source,
                                                const pipeline::Partition& partition,
                                                const std::string& position = {}) {
    auto reader = source.Read(partition, position, {});
    EXPECT_TRUE(reader) << reader.error().ToString();
    return reader ? *std::move(reader) : nullptr;
  }

  // Up to `limit` more documents.
  static Documents ReadSome(pipeline::Reader& reader, int limit = 1000) {
    Documents documents;
    while (std::ssize(documents) < limit) {
      const auto next = reader.Next();
      EXPECT_TRUE(next) << next.error().ToString();
      if (!next || !*next) break;
      EXPECT_EQ((*next)->defect, "");
      const auto body = ParseJson((*next)->body, "document");
      EXPECT_TRUE(body) << body.error().ToString();
      documents.push_back({(*body)["name"].get<std::string>(), std::string((*next)->position)});
    }
    return documents;
  }

  static std::vector<std::string> Expected() {
    std::vector<std::string> names;
    for (int i = 0; i < kDocuments; ++i) {
      const std::string number = std::to_string(i);
      names.push_back("d" + std::string(3 - number.size(), '0') + number);
    }
    return names;
  }

  std::unique_ptr<SourceUnderTest> under_test_;
  std::unique_ptr<pipeline::Source> source_;
  std::string collection_;
  std::vector<pipeline::Partition> partitions_;
};

INSTANTIATE_TEST_SUITE_P(All, SourceContract, ::testing::ValuesIn(SourceNames()),
                         [](const auto& source) { return source.param; });

TEST_P(SourceContract, PartitionsCoverEveryDocumentOnce) {
  std::vector<std::string> names;
  for (const pipeline::Partition& partition : partitions_) {
    for (const std::string& name : NamesOf(ReadSome(*Open(*source_, partition)))) {
      names.push_back(name);
    }
  }
  EXPECT_EQ(Sorted(names), Expected());
}

TEST_P(SourceContract, CollectionsAndPartitionsAreTheSameEveryTime) {
  auto again = under_test_->Open();
  EXPECT_EQ(again->Collections().value().front().metadata,
            source_->Collections().value().front().metadata);
  EXPECT_EQ(WithoutSizes(again->Partitions(collection_).value()), WithoutSizes(partitions_));
  for (const pipeline::Partition& partition : partitions_)
    EXPECT_EQ(partition.collection, collection_);
}

TEST_P(SourceContract, ReadingFromAnyPositionReturnsExactlyTheRestInAnyProcess) {
  for (const pipeline::Partition& partition : partitions_) {
    const Documents all = ReadSome(*Open(*source_, partition));
    auto other = under_test_->Open();
    for (size_t i = 0; i < all.size(); i += 3) {
      const Documents rest = ReadSome(*Open(*other, partition, all[i].position));
      const Documents expected(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end());
      EXPECT_EQ(NamesOf(rest), NamesOf(expected)) << "after " << all[i].position;
    }
  }
}

TEST_P(SourceContract, APartitionEndsAtItsEnd) {
  for (pipeline::Partition partition : partitions_) {
    const Documents all = ReadSome(*Open(*source_, partition));
    if (all.size() < 2) continue;
    const size_t half = all.size() / 2;
    partition.end = all[half].position;
    const Documents first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(half) + 1);
    EXPECT_EQ(NamesOf(ReadSome(*Open(*source_, partition))), NamesOf(first));
    // Nothing lies between a position and itself.
    EXPECT_TRUE(ReadSome(*Open(*source_, partition, partition.end)).empty());
  }
}

TEST_P(SourceContract, SplitAnywhereLosesAndRepeatsNothing) {
  for (const pipeline::Partition& partition : partitions_) {
    const std::vector<std::string> all = NamesOf(ReadSome(*Open(*source_, partition)));
    for (size_t before = 0; before <= all.size(); before += 7) {
      auto reader = Open(*source_, partition);
      std::vector<std::string> names = NamesOf(ReadSome(*reader, static_cast<int>(before)));
      const auto middle = reader->Split();
      ASSERT_TRUE(middle) << middle.error().ToString();
      for (const std::string& name : NamesOf(ReadSome(*reader))) names.push_back(name);
      if (under_test_->splits() && all.size() - before >= 10) {
        EXPECT_TRUE(*middle) << "after " << before;
      }
      if (*middle) {
        const auto rest = NamesOf(ReadSome(*Open(*source_, partition, **middle)));
        EXPECT_FALSE(rest.empty());
        names.insert(names.end(), rest.begin(), rest.end());
      }
      EXPECT_EQ(names, all) << "after " << before;
    }
  }
}

TEST_P(SourceContract, RepeatedSplitsEnd) {
  for (const pipeline::Partition& partition : partitions_) {
    const auto all = NamesOf(ReadSome(*Open(*source_, partition)));
    std::vector<std::string> names;
    std::vector<pipeline::Partition> todo = {partition};
    int pieces = 0;
    while (!todo.empty()) {
      ASSERT_LT(++pieces, 2 * kDocuments);
      pipeline::Partition piece = todo.back();
      todo.pop_back();
      auto reader = Open(*source_, piece);
      const auto middle = reader->Split();
      ASSERT_TRUE(middle) << middle.error().ToString();
      if (*middle) {
        pipeline::Partition rest = piece;
        rest.begin = **middle;
        todo.push_back(std::move(rest));
      }
      for (const std::string& name : NamesOf(ReadSome(*reader))) names.push_back(name);
    }
    EXPECT_EQ(names, all);
  }
}

TEST_P(SourceContract, FractionGrowsFromZeroToOne) {
  for (const pipeline::Partition& partition : partitions_) {
    double last = 0;
    for (const ReadDocument& document : ReadSome(*Open(*source_, partition))) {
      const auto fraction = source_->FractionBefore(partition, document.position);
      if (!fraction) return;  // unknown
      EXPECT_GE(*fraction, last);
      EXPECT_LE(*fraction, 1);
      last = *fraction;
    }
    EXPECT_EQ(source_->FractionBefore(partition, ""), 0);
  }
}

TEST_P(SourceContract, StoppedReaderIsCancelledOrAtItsEnd) {
  std::stop_source stop;
  auto reader = source_->Read(partitions_.front(), {}, stop.get_token());
  ASSERT_TRUE(reader);
  stop.request_stop();
  for (int i = 0; i <= kDocuments; ++i) {
    const auto next = (*reader)->Next();
    if (!next) {
      EXPECT_EQ(next.error().code, Code::kCancelled) << next.error().ToString();
      return;
    }
    if (!*next) return;
  }
  FAIL() << "the reader returned too many documents";
}

TEST_P(SourceContract, UnknownCollectionIsNotFound) {
  const auto partitions = source_->Partitions("nowhere");
  ASSERT_FALSE(partitions);
  EXPECT_EQ(partitions.error().code, Code::kNotFound) << partitions.error().ToString();
}

}  // namespace
}  // namespace muster::testing
