#include "cli/table.h"

#include <algorithm>
#include <cstdio>

#include "cli/context.h"
#include "core/secrets.h"

namespace muster::cli {
namespace {

constexpr size_t kGap = 2;        // between columns
constexpr size_t kLeastText = 8;  // minimum width of a truncated text

}  // namespace

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

bool Table::IsEmptyColumn(size_t column) const {
  return std::all_of(rows_.begin(), rows_.end(), [&](const std::vector<Cell>& row) {
    return row[column].text.empty() || row[column].text == "0";
  });
}

std::vector<size_t> Table::Fit(size_t width) const {
  std::vector<size_t> widths = widths_;
  const auto excess = [&] {
    size_t total = 0;
    for (const size_t one : widths) total += one == 0 ? 0 : one + kGap;
    return total > width + kGap ? total - width - kGap : 0;
  };
  for (size_t i = widths.size(); i-- > 1 && excess() > 0;) {
    if (columns_[i].importance == Importance::kLess) widths[i] = 0;
  }
  // The first column identifies the row.
  while (excess() > 0) {
    size_t widest = 0;
    for (size_t i = 1; i < widths.size(); ++i) {
      const size_t least = std::max(DisplayWidth(columns_[i].title), kLeastText);
      if (columns_[i].align == Align::kRight || widths[i] <= least) continue;
      if (widest == 0 || widths[i] > widths[widest]) widest = i;
    }
    if (widest == 0) break;
    const size_t least = std::max(DisplayWidth(columns_[widest].title), kLeastText);
    widths[widest] -= std::min(widths[widest] - least, excess());
  }
  for (size_t i = widths.size(); i-- > 1 && excess() > 0;) {
    if (widths[i] > 0 && IsEmptyColumn(i)) widths[i] = 0;
  }
  return widths;
}

void Table::Print(std::ostream& out, bool color) const { PrintWithin(WidthOf(out), out, color); }

void Table::PrintWithin(std::optional<int> width, std::ostream& out, bool color) const {
  const std::vector<size_t> widths =
      width ? Fit(static_cast<size_t>(std::max(*width, 1))) : widths_;
  auto print_row = [&](auto cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      Cell cell = cell_of(i);
      if (DisplayWidth(cell.text) > widths[i]) cell.text = CutTo(widths[i] - 1, cell.text) + "…";
      const std::string padding(widths[i] - DisplayWidth(cell.text), ' ');
      const std::string text = Styled(cell.text, cell.style, color);
      if (!line.empty()) line += std::string(kGap, ' ');
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

void PrintList(const Table& table, const Json& list, Context& context) {
  if (context.json) {
    context.out << ToJsonText(list) << '\n';
  } else {
    table.Print(context.out, context.color);
  }
}

std::string Fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

}  // namespace muster::cli
