#include "cli/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace muster::cli {
namespace {

TEST(Terminal, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("café"), 4U);
  EXPECT_EQ(DisplayWidth("cafe\xCC\x81"), 4U);
  EXPECT_EQ(DisplayWidth("日本"), 4U);
  EXPECT_EQ(DisplayWidth("🚀"), 2U);
  EXPECT_EQ(DisplayWidth("\xff"), 1U);
}

TEST(Terminal, PrintableHidesControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[31m\nü\x7f\xff"), "a\uFFFD[31m\uFFFDü\uFFFD\uFFFD");
  EXPECT_EQ(Printable("日本 🚀"), "日本 🚀");
}

TEST(Terminal, ColourIsOnlyForTerminalsUnlessRequested) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  EXPECT_FALSE(WantsColor("auto", fds[1]));
  EXPECT_TRUE(WantsColor("always", fds[1]));
  EXPECT_FALSE(WantsColor("never", fds[1]));
  unsetenv("COLUMNS");
  EXPECT_EQ(TerminalWidth(fds[1]), 80);
  setenv("COLUMNS", "132", 1);
  EXPECT_EQ(TerminalWidth(fds[1]), 132);
  setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(TerminalWidth(fds[1]), 80);
  unsetenv("COLUMNS");
  close(fds[0]);
  close(fds[1]);
}

TEST(Terminal, NoColorTurnsColourOffOnATerminal) {
  int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) FAIL() << "no pseudo terminal";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(WantsColor("auto", terminal));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor("auto", terminal));
  EXPECT_TRUE(WantsColor("always", terminal));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(WantsColor("auto", terminal));
  close(terminal);
}

TEST(Terminal, StylesAreOffWithoutColour) {
  EXPECT_EQ(Styled("x", Style::kBad, false), "x");
  EXPECT_EQ(Styled("x", Style::kBad, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(Styled("x", Style::kNone, true), "x");
}

}  // namespace
}  // namespace muster::cli
