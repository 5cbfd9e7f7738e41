#include "store/opensearch/opensearch_records.h"

#include <gtest/gtest.h>

namespace muster::store {
namespace {

TEST(OpenSearchRecords, VersionsGrowWithSequenceNumbersAndAcrossElections) {
  const DocumentVersion first{.seq_no = 0, .primary_term = 1};
  const DocumentVersion later{.seq_no = 1'000'000'000, .primary_term = 1};
  const DocumentVersion elected{.seq_no = 7, .primary_term = 2};
  EXPECT_GT(first.Packed(), 0);
  EXPECT_GT(later.Packed(), first.Packed());
  EXPECT_GT(elected.Packed(), later.Packed());
  for (const DocumentVersion version : {first, later, elected}) {
    const DocumentVersion again = DocumentVersion::Unpack(version.Packed());
    EXPECT_EQ(again.seq_no, version.seq_no);
    EXPECT_EQ(again.primary_term, version.primary_term);
  }
}

TEST(OpenSearchRecords, IdsAreReadableDistinctAndNeverTooLong) {
  EXPECT_EQ(DocumentId("work", "a/b"), "work/a/b");
  EXPECT_NE(DocumentId("a/b", "c"), DocumentId("a", "b/c"));
  const std::string key(kMaxKeyBytes, 'k');
  const std::string kind(kMaxNameBytes, '/');
  EXPECT_LE(DocumentId(kind, key).size(), 512u);
  EXPECT_NE(DocumentId(kind, key), DocumentId(kind, key.substr(1) + "l"));
}

TEST(OpenSearchRecords, NeverDueHasNoTimes) {
  const Json document = NewDocument(Record{.kind = "k", .queue = "q", .key = "a"}, {}, "w");
  EXPECT_TRUE(document["due"].is_null());
  EXPECT_TRUE(document["ready"].is_null());
  EXPECT_FALSE(RecordOf(document, {0, 1}).due);
}

TEST(OpenSearchRecords, UnchangedDueIsNotAmongTheChangedFields) {
  const Change change =
      Change::Put(Record{.kind = "k", .queue = "q", .key = "a", .version = 5}, Due::Unchanged());
  const Json fields = ChangedFields(change, {}, "w");
  EXPECT_FALSE(fields.contains("due"));
  EXPECT_FALSE(fields.contains("queue"));
  EXPECT_FALSE(fields.contains("epoch"));
}

}  // namespace
}  // namespace muster::store
