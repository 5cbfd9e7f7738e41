#include "cli/table.h"

#include <algorithm>

#include "base/secrets.h"

namespace muster::cli {

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const Column& column : columns_) widths_.push_back(DisplayWidth(column.title));
}

void Table::AddRow(std::vector<Cell> cells) {
  cells.resize(columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].text = Printable(Redact(cells[i].text));
    widths_[i] = std::max(widths_[i], DisplayWidth(cells[i].text));
  }
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out, bool color) const {
  auto print_row = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_of(i);
      const std::string padding(widths_[i] - DisplayWidth(cell.text), ' ');
      const std::string text = Styled(cell.text, cell.style, color);
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kRight ? padding + text : text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  print_row([&](size_t i) { return Cell{columns_[i].title, Style::kBold}; });
  for (const auto& row : rows_) {
    print_row([&](size_t i) { return row[i]; });
  }
}

}  // namespace muster::cli
