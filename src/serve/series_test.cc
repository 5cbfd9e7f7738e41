#include "serve/series.h"

#include <gtest/gtest.h>

namespace muster::serve {
namespace {

SeriesBook::Point At(int seconds, double docs, double lag) {
  return {.at = WallTime(std::chrono::seconds(seconds)),
          .totals = {{"docs", docs}},
          .levels = {{"lag", lag}}};
}

TEST(SeriesTest, TotalsBecomeRatesAndLevelsStay) {
  SeriesBook book;
  book.Add("s", At(1, 100, 9));
  book.Add("s", At(3, 300, 7));
  book.Add("s", At(4, 300, 5));
  EXPECT_EQ(ToJsonText(book.Columns("s")),
            R"({"at":[3000,4000],"docs_per_second":[100.0,0.0],"lag":[7.0,5.0]})");
}

TEST(SeriesTest, AtMostOnePointPerSecond) {
  SeriesBook book;
  book.Add("s", At(1, 1, 1));
  book.Add("s", {.at = WallTime(std::chrono::milliseconds(1'500))});
  book.Add("s", At(2, 2, 2));
  EXPECT_EQ(book.Columns("s")["at"].size(), 1U);
}

TEST(SeriesTest, SlopeOfALevel) {
  SeriesBook book;
  EXPECT_FALSE(book.Slope("s", "lag"));
  book.Add("s", At(1, 0, 100));
  EXPECT_FALSE(book.Slope("s", "lag"));
  book.Add("s", At(11, 0, 50));
  EXPECT_EQ(book.Slope("s", "lag"), -5.0);
}

}  // namespace
}  // namespace muster::serve
