#include "cli/help.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

CommandInfo Example() {
  CommandInfo copy{"copy", "copies things", "Run", "  muster copy a b", {}, {}};
  copy.options = {{{"-h", "--help"}, "", {}, "prints this"},
                  {{"FROM"}, "TEXT", {"here", "there"}, "where to begin"},
                  {{"--speed"},
                   "TEXT",
                   {"slow", "fast"},
                   "how fast, with a description that is far too long for one line of a terminal"}};
  return {"muster", "Muster moves data.", "", "", {{{"--store"}, "URL", {}, "the store"}}, {copy}};
}

TEST(Help, ProgramHelpNamesCommandsOptionsAndExitCodes) {
  std::string help = ProgramHelp(Example());
  EXPECT_EQ(help.find("Muster moves data.\n\nUsage: muster COMMAND [OPTIONS]\n\nRun:\n"
                      "  copy                      copies things\n"),
            0U)
      << help;
  EXPECT_NE(help.find("      --store URL           the store\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  75   failed, and safe to run again"), std::string::npos) << help;
}

TEST(Help, CommandHelpIsAlignedAndWrapped) {
  EXPECT_EQ(CommandHelp(Example().commands[0], "muster copy"),
            "copies things\n\n"
            "Usage: muster copy FROM [OPTIONS]\n\n"
            "Arguments:\n"
            "  FROM                      where to begin: here, there\n\n"
            "Options:\n"
            "  -h, --help                prints this\n"
            "      --speed slow|fast     how fast, with a description that is far too long\n"
            "                            for one line of a terminal\n\n"
            "Examples:\n"
            "  muster copy a b\n\n"
            "'muster --help' lists the global options and the exit codes.\n");
}

TEST(Help, CommandHelpListsItsSubcommands) {
  CommandInfo work{"work", "shows things", "Run", "", {}, {Example().commands[0]}, true};
  work.commands[0].name = "list";
  const std::string help = CommandHelp(work, "muster work");
  EXPECT_NE(help.find("Usage: muster work COMMAND [OPTIONS]\n\nCommands:\n"
                      "  list                      copies things\n"),
            std::string::npos)
      << help;
  EXPECT_NE(help.find("'muster work COMMAND --help' shows the help"), std::string::npos) << help;
}

}  // namespace
}  // namespace muster::cli
