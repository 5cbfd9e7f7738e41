#include "sql/pgoutput.h"

#include <gtest/gtest.h>

namespace muster::sql {
namespace {

// Builds a message: numbers in network order.
class Bytes {
 public:
  template <class T>
  Bytes& Number(T value) {
    for (int shift = 8 * (sizeof(T) - 1); shift >= 0; shift -= 8) {
      text_ += static_cast<char>(static_cast<uint64_t>(value) >> shift);
    }
    return *this;
  }
  Bytes& Byte(char value) { return Number(value); }
  Bytes& Text(std::string_view text) {
    text_.append(text);
    return Byte('\0');
  }
  Bytes& Value(std::string_view text) {
    Byte('t').Number(static_cast<int32_t>(text.size()));
    text_.append(text);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <class T>
T Decoded(const std::string& bytes) {
  auto message = DecodePgOutput(bytes);
  if (!message) throw std::runtime_error(message.error().message);
  return std::get<T>(*std::move(message));
}

std::string Update() {
  return Bytes()
      .Byte('U')
      .Number(int32_t{7})
      .Byte('K')
      .Number(int16_t{2})
      .Value("1")
      .Byte('n')
      .Byte('N')
      .Number(int16_t{2})
      .Value("2")
      .Byte('u')
      .text();
}

TEST(PgLsn, RoundTrips) {
  EXPECT_EQ(PgLsnText(0x16B374D848), "16/B374D848");
  EXPECT_EQ(ParsePgLsn("16/B374D848"), 0x16B374D848u);
  EXPECT_EQ(ParsePgLsn(PgLsnText(UINT64_MAX)), UINT64_MAX);
  for (const char* text : {"", "/", "1", "1/", "/1", "1/g", "1/100000000", "1/2/3", "-1/2"}) {
    EXPECT_EQ(ParsePgLsn(text), std::nullopt) << text;
  }
}

TEST(PgOutput, TransactionsHaveATimeAndAnEnd) {
  const auto begin = Decoded<PgBegin>(Bytes()
                                          .Byte('B')
                                          .Number(uint64_t{0x100})
                                          .Number(int64_t{86'400'000'000})
                                          .Number(uint32_t{745})
                                          .text());
  EXPECT_EQ(begin.commit, 0x100u);
  EXPECT_EQ(begin.xid, 745u);
  EXPECT_EQ(begin.time,
            WallTime(std::chrono::sys_days(std::chrono::year{2000} / 1 / 2).time_since_epoch()));
  const auto commit = Decoded<PgCommit>(Bytes()
                                            .Byte('C')
                                            .Byte('\0')
                                            .Number(uint64_t{0x100})
                                            .Number(uint64_t{0x130})
                                            .Number(int64_t{0})
                                            .text());
  EXPECT_EQ(commit.end, 0x130u);
}

TEST(PgOutput, RelationsNameTheirColumns) {
  const auto relation = Decoded<PgRelation>(Bytes()
                                                .Byte('R')
                                                .Number(uint32_t{7})
                                                .Text("public")
                                                .Text("orders")
                                                .Byte('d')
                                                .Number(int16_t{2})
                                                .Byte('\1')
                                                .Text("id")
                                                .Number(uint32_t{20})
                                                .Number(int32_t{-1})
                                                .Byte('\0')
                                                .Text("name")
                                                .Number(uint32_t{25})
                                                .Number(int32_t{-1})
                                                .text());
  EXPECT_EQ(relation.oid, 7u);
  EXPECT_EQ(relation.schema, "public");
  EXPECT_EQ(relation.table, "orders");
  ASSERT_EQ(relation.columns.size(), 2u);
  EXPECT_EQ(relation.columns[0], (PgColumn{"id", true, 20, -1}));
  EXPECT_EQ(relation.columns[1], (PgColumn{"name", false, 25, -1}));
}

TEST(PgOutput, UpdatesOfAKeyHaveTheOldOneAndTheNewRow) {
  const std::string bytes = Update();
  const auto change = Decoded<PgChange>(bytes);
  EXPECT_EQ(change.kind, PgChange::Kind::kUpdate);
  EXPECT_EQ(change.relation, 7u);
  ASSERT_TRUE(change.old);
  EXPECT_EQ(change.old->at(0).text, "1");
  EXPECT_EQ(change.old->at(1).kind, PgField::Kind::kNull);
  EXPECT_EQ(change.row.at(0).text, "2");
  EXPECT_EQ(change.row.at(1).kind, PgField::Kind::kUnchanged);
}

TEST(PgOutput, MarksAndTruncates) {
  const std::string bytes = Bytes()
                                .Byte('M')
                                .Byte('\1')
                                .Number(uint64_t{5})
                                .Text("muster")
                                .Number(int32_t{2})
                                .Byte('i')
                                .Byte('d')
                                .text();
  const auto mark = Decoded<PgMark>(bytes);
  EXPECT_EQ(mark.prefix, "muster");
  EXPECT_EQ(mark.content, "id");
  const auto truncate = Decoded<PgTruncate>(Bytes()
                                                .Byte('T')
                                                .Number(int32_t{2})
                                                .Byte('\1')
                                                .Number(uint32_t{7})
                                                .Number(uint32_t{8})
                                                .text());
  EXPECT_EQ(truncate.relations, (std::vector<uint32_t>{7, 8}));
}

TEST(PgOutput, NothingTornOrForeignIsAccepted) {
  const std::string bytes = Update();
  for (size_t end = 0; end < bytes.size(); ++end) {
    const auto message = DecodePgOutput(std::string_view(bytes).substr(0, end));
    ASSERT_FALSE(message) << end;
    EXPECT_EQ(message.error().code, Code::kCorrupt);
  }
  EXPECT_FALSE(DecodePgOutput(bytes + "x"));
  EXPECT_FALSE(DecodePgOutput("Z"));
  // Counts that the message is too short for.
  EXPECT_FALSE(DecodePgOutput(Bytes()
                                  .Byte('I')
                                  .Number(int32_t{7})
                                  .Byte('N')
                                  .Number(int16_t{1})
                                  .Byte('t')
                                  .Number(int32_t{2'000'000'000})
                                  .text()));
  EXPECT_FALSE(DecodePgOutput(
      Bytes().Byte('T').Number(int32_t{500'000'000}).Byte('\0').Number(int32_t{1}).text()));
}

}  // namespace
}  // namespace muster::sql
