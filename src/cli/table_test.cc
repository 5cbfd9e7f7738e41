#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/secrets.h"

namespace muster::cli {
namespace {

std::string Print(const Table& table, bool color = false) {
  std::ostringstream out;
  table.Print(out, color);
  return out.str();
}

TEST(Table, AlignsByDisplayedWidth) {
  Table table({{"QUEUE"}, {"DUE", Table::Align::kRight}, {"NOTE"}});
  table.AddRow({{"日本"}, {"7"}, {"a"}});
  table.AddRow({{"orders-é"}, {"1234"}});
  EXPECT_EQ(Print(table),
            "QUEUE      DUE  NOTE\n"
            "日本         7  a\n"
            "orders-é  1234\n");
}

TEST(Table, ColoursDoNotDisturbTheAlignment) {
  Table table({{"A"}, {"B"}});
  table.AddRow({{"x", Style::kBad}, {"y"}});
  table.AddRow({{"long"}, {"y"}});
  EXPECT_EQ(Print(table, true),
            "\x1b[1mA\x1b[0m     \x1b[1mB\x1b[0m\n"
            "\x1b[31mx\x1b[0m     y\n"
            "long  y\n");
}

TEST(Table, CellsCannotCommandTheTerminalOrLeakSecrets) {
  RememberSecret("table-s3cret");
  Table table({{"A"}});
  table.AddRow({{"\x1b[2J\n"}});
  table.AddRow({{"pw table-s3cret"}});
  EXPECT_EQ(Print(table), "A\n\uFFFD[2J\uFFFD\npw ***\n");
}

Table Wide() {
  Table table({{"NAME"},
               {"STATUS"},
               {"ROWS", Table::Align::kRight},
               {"BAD", Table::Align::kRight},
               {"STAGED", Table::Align::kRight, Table::Importance::kLess},
               {"LEFT", Table::Align::kRight}});
  table.AddRow({{"one"}, {"waits for the lock"}, {"10"}, {"0"}, {"10"}, {"3m05s"}});
  table.AddRow({{"two"}, {"runs"}, {"7"}, {"0"}, {"7"}, {"9s"}});
  return table;
}

std::string Within(const Table& table, std::optional<int> width) {
  std::ostringstream out;
  table.PrintWithin(width, out, false);
  return out.str();
}

TEST(Table, LessImportantColumnsAreDroppedOnNarrowTerminals) {
  const Table table = Wide();
  const std::string whole =
      "NAME  STATUS              ROWS  BAD  STAGED   LEFT\n"
      "one   waits for the lock    10    0      10  3m05s\n"
      "two   runs                   7    0       7     9s\n";
  EXPECT_EQ(Within(table, std::nullopt), whole);
  EXPECT_EQ(Within(table, 50), whole);
  EXPECT_EQ(Within(table, 49),
            "NAME  STATUS              ROWS  BAD   LEFT\n"
            "one   waits for the lock    10    0  3m05s\n"
            "two   runs                   7    0     9s\n");
  EXPECT_EQ(Within(table, 36),
            "NAME  STATUS        ROWS  BAD   LEFT\n"
            "one   waits for t…    10    0  3m05s\n"
            "two   runs             7    0     9s\n");
  EXPECT_EQ(Within(table, 30),
            "NAME  STATUS    ROWS   LEFT\n"
            "one   waits f…    10  3m05s\n"
            "two   runs         7     9s\n");
}

}  // namespace
}  // namespace muster::cli
