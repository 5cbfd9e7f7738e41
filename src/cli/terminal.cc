#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "core/number.h"
#include "core/utf8.h"

namespace muster::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// The Unicode blocks likely in names and titles; the full tables would fill a page each.
constexpr Range kZeroWidth[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                {0x064B, 0x065F}, {0x0E34, 0x0E3A}, {0x200B, 0x200F},
                                {0x1AB0, 0x1AFF}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool Contains(const Range (&ranges)[N], char32_t point) {
  for (const Range& range : ranges) {
    if (point >= range.first && point <= range.last) return true;
  }
  return false;
}

bool IsControl(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

}  // namespace

bool IsTerminal(int fd) { return isatty(fd) == 1; }

int TerminalWidth(int fd) {
  const char* columns = std::getenv("COLUMNS");
  if (columns != nullptr) {
    if (const auto wanted = ParseNumber<int>(columns); wanted && *wanted > 0) return *wanted;
  }
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::optional<int> WidthOf(const std::ostream& out) {
  if (&out != &std::cout || !IsTerminal(STDOUT_FILENO)) return std::nullopt;
  return TerminalWidth(STDOUT_FILENO);
}

bool WantsColor(std::string_view mode, int fd) {
  if (mode != "auto") return mode == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb") && IsTerminal(fd);
}

std::string Styled(std::string_view text, Style style, bool color) {
  const char* start = nullptr;
  switch (style) {
    case Style::kNone:
      break;
    case Style::kBold:
      start = "\x1b[1m";
      break;
    case Style::kDim:
      start = "\x1b[2m";
      break;
    case Style::kGood:
      start = "\x1b[32m";
      break;
    case Style::kWarn:
      start = "\x1b[33m";
      break;
    case Style::kBad:
      start = "\x1b[31m";
      break;
  }
  if (!color || start == nullptr) return std::string(text);
  return start + std::string(text) + "\x1b[0m";
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    char32_t point = TakeCodePoint(text);
    if (!Contains(kZeroWidth, point)) width += Contains(kWide, point) ? 2 : 1;
  }
  return width;
}

std::string CutTo(size_t columns, std::string_view text) {
  std::string cut;
  size_t width = 0;
  while (!text.empty()) {
    std::string_view rest = text;
    TakeCodePoint(rest);
    const std::string_view character = text.substr(0, text.size() - rest.size());
    width += DisplayWidth(character);
    if (width > columns) break;
    cut += character;
    text = rest;
  }
  return cut;
}

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    std::string_view rest = text;
    char32_t point = TakeCodePoint(rest);
    if (IsControl(point) || point == U'\uFFFD') {
      printable += "\uFFFD";
    } else {
      printable += text.substr(0, text.size() - rest.size());
    }
    text = rest;
  }
  return printable;
}

}  // namespace muster::cli
