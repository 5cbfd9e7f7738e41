#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace muster::cli {

// A table for people, printed once at the end of a command:
//
//   Table table({{"QUEUE"}, {"DUE", Table::Align::kRight}});
//   table.AddRow({{"orders"}, {"12", Style::kWarn}});
//   table.Print(context.out, context.color);
//
// Texts may hold anything; what could disturb the terminal is made visible, and remembered
// secrets are redacted.
class Table {
 public:
  enum class Align { kLeft, kRight };  // numbers go right
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  struct Cell {
    std::string text;
    Style style = Style::kNone;
  };

  explicit Table(std::vector<Column> columns);

  // One cell for each column; missing ones are empty.
  void AddRow(std::vector<Cell> cells);

  void Print(std::ostream& out, bool color) const;

 private:
  std::vector<Column> columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace muster::cli
