#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace muster::cli {

bool IsTerminal(int fd);

// The terminal's current width: from COLUMNS, or the terminal; 80 without one.
int TerminalWidth(int fd);

// The maximum width of output to a stream; none: not a terminal, nothing is truncated.
std::optional<int> WidthOf(const std::ostream& out);

// Whether to use colour on `fd`. `mode` is auto, always or never; auto means a terminal that is not
// dumb, with NO_COLOR unset or empty (https://no-color.org).
bool WantsColor(std::string_view mode, int fd);

enum class Style { kNone, kBold, kDim, kGood, kWarn, kBad };

// The text, styled if `color`.
std::string Styled(std::string_view text, Style style, bool color);

// The columns a text takes: wide East Asian characters and emoji two, combining marks none.
size_t DisplayWidth(std::string_view text);

// As much of the text as fits in that many columns.
std::string CutTo(size_t columns, std::string_view text);

// The text with control characters as U+FFFD: stored data must not control the terminal.
std::string Printable(std::string_view text);

}  // namespace muster::cli
