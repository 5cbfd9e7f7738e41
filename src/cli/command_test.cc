#include "cli/command.h"

#include <gtest/gtest.h>

#include <iostream>

#include "cli/context.h"

namespace muster::cli {
namespace {

// A program with a command `copy`, which has a subcommand `fast`, and a command `show`, which has
// only a subcommand `list`.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    program_.AddFlag("--json", json_, "as JSON");
    Command copy = program_.AddCommand("copy", "copies things");
    copy.AddOption("FROM", from_, "where from").Required();
    copy.AddOption("--level", level_, "how much").Range(1, 9).TypeName("N");
    copy.AddOption("--kind", kind_, "which").OneOf({"some", "all"});
    copy.AddOption("--size", size_, "how large").Bytes().Range(size_t{1}, size_t{1} << 20);
    copy.AddOption("--name", names_, "what to copy").OneValuePerUse();
    copy.AddOption("--secret", secret_).Hidden();
    copy.Action(context_, [] { return 10; });
    copy.AddCommand("fast", "copies faster").Action(context_, [] { return 20; });
    Command show = program_.AddCommand("show", "shows things");
    show.RequireCommand();
    show.Footer("  muster show list");
    Command list = show.AddCommand("list", "lists them");
    list.AddOption("--level", level_, "how much").TypeName("N");
    list.Action(context_, [] { return 30; });
  }

  Result<std::optional<std::string>> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "muster");
    return program_.Parse(static_cast<int>(arguments.size()), arguments.data());
  }

  Error Failure(const std::vector<const char*>& arguments) {
    const auto parsed = Parse(arguments);
    return parsed ? Error{} : parsed.error();
  }

  Context context_{RealEnv(), std::cout, std::cerr};
  Program program_{"muster", "moves things", "muster 1.0"};
  bool json_ = false;
  std::string from_;
  int level_ = 5;
  std::string kind_ = "all";
  std::optional<uint64_t> size_;
  std::vector<std::string> names_;
  std::string secret_;
};

TEST_F(CommandTest, ParseSetsValuesAndTheAction) {
  const auto parsed =
      Parse({"copy", "here", "--level=3", "--size", "2KB", "--name", "a", "--name", "b", "--json"});
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(*parsed, std::nullopt);
  EXPECT_EQ(from_, "here");
  EXPECT_EQ(level_, 3);
  EXPECT_EQ(kind_, "all");
  EXPECT_EQ(size_, 2048U);
  EXPECT_EQ(names_, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(json_);
  EXPECT_TRUE(program_.Given("--json"));
  EXPECT_EQ(*context_.action(), 10);
}

TEST_F(CommandTest, OptionOfAnotherActionIsRejected) {
  Command move = program_.AddCommand("move", "moves things");
  move.AddOption("ACTION", kind_, "what to do");
  move.AddOption("TARGET", from_, "what");
  move.AddOption("--level", level_, "how much");
  const std::vector<OptionUse> uses = {{"--level", {"up", "down"}}, {"TARGET", {"up", "off"}}};
  ASSERT_TRUE(Parse({"move", "up", "x", "--level=3"}));
  EXPECT_TRUE(move.CheckUse("up", uses));
  EXPECT_EQ(move.CheckUse("off", uses).error().message, "--level is not for off");
  EXPECT_EQ(move.CheckUse("down", uses).error().hint, "it is for: up, off");
}

TEST_F(CommandTest, TheInnermostCommandActs) {
  ASSERT_TRUE(Parse({"copy", "here", "fast"}));
  EXPECT_EQ(*context_.action(), 20);
}

TEST_F(CommandTest, HelpAndVersionRunNoAction) {
  EXPECT_EQ(*Parse({"--version"}), "muster 1.0\n");
  const auto help = Parse({"copy", "--help"});
  ASSERT_TRUE(help && *help);
  EXPECT_EQ((*help)->find("copies things\n\nUsage: muster copy FROM"), 0U) << **help;
  EXPECT_NE((*help)->find("--level N "), std::string::npos) << **help;
  EXPECT_NE((*help)->find("--kind some|all "), std::string::npos) << **help;
  EXPECT_EQ((*help)->find("--secret"), std::string::npos) << **help;
  EXPECT_FALSE(context_.action);
}

TEST_F(CommandTest, AnOptionalArgumentIsInBracketsInItsUsage) {
  Command move = program_.AddCommand("move", "moves things");
  move.AddOption("TARGET", kind_, "what");
  const std::string help = Parse({"move", "--help"}).value().value();
  EXPECT_NE(help.find("Usage: muster move [TARGET] [OPTIONS]"), std::string::npos) << help;
}

TEST_F(CommandTest, InvalidValuesAreUsageErrors) {
  for (const char* wrong : {"--level=0", "--level=10", "--level=x", "--kind=none", "--size=2MB"}) {
    const Error error = Failure({"copy", "here", wrong});
    EXPECT_EQ(error.code, Code::kInvalid) << wrong;
    EXPECT_EQ(error.hint, "see 'muster copy --help' and 'muster --help'") << wrong;
  }
  EXPECT_EQ(Failure({"copy"}).message, "FROM is required");
  EXPECT_EQ(Failure({"copy", "here", "--level=0"}).message,
            "--level: '0' is not a number from 1 to 9");
  EXPECT_EQ(Failure({"copy", "here", "--kind=none"}).message,
            "--kind: 'none' is not one of some, all");
  EXPECT_EQ(Failure({"copy", "here", "--size=much"}).message,
            "--size: 'much' is not a size, such as 8MiB");
}

TEST_F(CommandTest, UnknownArgumentsAreNamedWithASuggestion) {
  EXPECT_EQ(Failure({"cpoy"}).message, "unknown command 'cpoy'");
  EXPECT_EQ(Failure({"cpoy"}).hint, "did you mean 'copy'?");
  EXPECT_EQ(Failure({"copy", "here", "--levle=3"}).message, "unknown option '--levle=3'");
  EXPECT_EQ(Failure({"copy", "here", "--levle=3"}).hint, "did you mean '--level'?");
  EXPECT_EQ(Failure({"copy", "here", "there"}).message, "unexpected argument 'there'");
  EXPECT_EQ(Failure({"copy", "here", "there"}).hint, "see 'muster copy --help'");
}

TEST_F(CommandTest, SubcommandsAreNamedInFull) {
  EXPECT_EQ(Failure({"show"}).message, "'muster show' needs a command: list");
  EXPECT_EQ(Failure({"show"}).hint, "'muster show --help' describes them");
  EXPECT_EQ(Failure({"show", "lst"}).message, "unknown command 'lst'");
  EXPECT_EQ(Failure({"show", "lst"}).hint, "did you mean 'list'?");
  EXPECT_EQ(Failure({"show", "nothing"}).hint, "see 'muster show --help'");
  EXPECT_EQ(Failure({"show", "list", "--levle=1"}).hint, "did you mean '--level'?");
  EXPECT_EQ(Failure({"show", "list", "--level=x"}).hint,
            "see 'muster show list --help' and 'muster --help'");
  const std::string show = Parse({"show", "--help"}).value().value();
  EXPECT_NE(show.find("Usage: muster show COMMAND [OPTIONS]\n\nCommands:\n  list "),
            std::string::npos)
      << show;
  const std::string list = Parse({"show", "list", "--help"}).value().value();
  EXPECT_NE(list.find("Usage: muster show list [OPTIONS]"), std::string::npos) << list;
  EXPECT_EQ(list.find("Examples"), std::string::npos) << "those are its parent's: " << list;
}

}  // namespace
}  // namespace muster::cli
