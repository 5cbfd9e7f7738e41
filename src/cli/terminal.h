#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace muster::cli {

bool IsTerminal(int fd);

// Columns of the terminal, now: by COLUMNS, or as the terminal says; 80 where there is none.
int TerminalWidth(int fd);

// How wide what is printed to a stream may be; none: it goes to no terminal, and nothing is cut.
std::optional<int> WidthOf(const std::ostream& out);

// Whether to colour what goes to `fd`. `mode` is auto, always or never; auto means a terminal that
// is not dumb, with NO_COLOR unset or empty (https://no-color.org).
bool WantsColor(std::string_view mode, int fd);

enum class Style { kNone, kBold, kDim, kGood, kWarn, kBad };

// The text in a style, or as it is.
std::string Styled(std::string_view text, Style style, bool color);

// How many columns a text takes: wide East Asian characters and emoji two, combining marks none.
size_t DisplayWidth(std::string_view text);

// As much of the text as fits into that many columns.
std::string CutTo(size_t columns, std::string_view text);

// The text with control characters shown as U+FFFD: stored data must not command the terminal.
std::string Printable(std::string_view text);

}  // namespace muster::cli
