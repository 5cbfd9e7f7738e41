#pragma once

#include <optional>
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
// On a terminal that is too narrow, columns of less importance are left out first, then long texts
// are cut, then columns that hold nothing but zeros are left out. What goes to a file or a pipe is
// whole.
//
// Texts may hold anything; what could disturb the terminal is made visible, and remembered
// secrets are redacted.
class Table {
 public:
  enum class Align { kLeft, kRight };  // numbers go right
  enum class Importance { kNormal, kLess };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Importance importance = Importance::kNormal;
  };
  struct Cell {
    std::string text;
    Style style = Style::kNone;
  };

  explicit Table(std::vector<Column> columns);

  // One cell for each column; missing ones are empty.
  void AddRow(std::vector<Cell> cells);

  void Print(std::ostream& out, bool color) const;
  // Within so many columns, if that is possible.
  void PrintWithin(std::optional<int> width, std::ostream& out, bool color) const;

 private:
  // The width of every column, 0 of one that is left out.
  std::vector<size_t> Fit(size_t width) const;
  bool IsEmptyColumn(size_t column) const;

  std::vector<Column> columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace muster::cli
