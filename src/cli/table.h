#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "core/json.h"

namespace muster::cli {

struct Context;

// A table for people, printed once at the end of a command:
//
//   Table table({{"QUEUE"}, {"DUE", Table::Align::kRight}});
//   table.AddRow({{"orders"}, {"12", Style::kWarn}});
//   table.Print(context.out, context.color);
//
// On a narrow terminal, less important columns are dropped first, then long texts are truncated,
// then columns with only zeros are dropped. Output to a file or a pipe is complete.
//
// Any text is safe: characters that could disturb the terminal are made visible, and known secrets
// are redacted.
class Table {
 public:
  enum class Align { kLeft, kRight };  // kRight for numbers
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

  // One cell per column; missing ones are empty.
  void AddRow(std::vector<Cell> cells);

  void Print(std::ostream& out, bool color) const;
  // Within this many columns, if possible.
  void PrintWithin(std::optional<int> width, std::ostream& out, bool color) const;

 private:
  // The width of every column, 0 for a dropped one.
  std::vector<size_t> Fit(size_t width) const;
  bool IsEmptyColumn(size_t column) const;

  std::vector<Column> columns_;
  std::vector<size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
};

// The result of a command that lists things: the table for people, or `list` for programs.
void PrintList(const Table& table, const Json& list, Context& context);

// A number with so many digits after the point.
std::string Fixed(double number, int digits);

}  // namespace muster::cli
