#include "cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/secrets.h"

namespace muster::cli {
namespace {

std::string Print(const Table& table, bool color = false) {
  std::ostringstream out;
  table.Print(out, color);
  return out.str();
}

TEST(Table, AlignsColumnsByWhatIsSeen) {
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

}  // namespace
}  // namespace muster::cli
