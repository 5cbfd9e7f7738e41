#include "change/outbox.h"

#include <gtest/gtest.h>

namespace muster::change {
namespace {

TEST(Outbox, HasDebeziumsColumnsByDefault) {
  const auto outbox = ParseOutbox("shop.outbox");
  ASSERT_TRUE(outbox) << outbox.error().ToString();
  EXPECT_EQ(outbox->table, "shop.outbox");
  EXPECT_EQ(outbox->stream, (std::vector<std::string>{"aggregatetype", "aggregateid"}));
  EXPECT_EQ(outbox->payload, "payload");
}

TEST(Outbox, NamesItsColumns) {
  const auto outbox = ParseOutbox("o?stream=kind,key&id=uuid&type=name&payload=body&metadata=meta");
  ASSERT_TRUE(outbox) << outbox.error().ToString();
  EXPECT_EQ(outbox->stream, (std::vector<std::string>{"kind", "key"}));
  EXPECT_EQ(outbox->id, "uuid");
  EXPECT_EQ(outbox->type, "name");
  EXPECT_EQ(outbox->payload, "body");
  EXPECT_EQ(outbox->metadata, "meta");
}

TEST(Outbox, RejectsUnknownParameters) {
  for (const char* text : {"", "?id=x", "o?id", "o?id=", "o?key=x", "o?"}) {
    const auto outbox = ParseOutbox(text);
    ASSERT_FALSE(outbox) << text;
    EXPECT_EQ(outbox.error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace muster::change
