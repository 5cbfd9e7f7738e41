#include "task/call/sql_script.h"

#include <gtest/gtest.h>

namespace muster::task {
namespace {

std::vector<std::string> Texts(std::string_view script) {
  std::vector<std::string> texts;
  for (const SqlStatement& one : SplitSqlScript(script)) texts.push_back(one.text);
  return texts;
}

using Strings = std::vector<std::string>;

TEST(SqlScript, SemicolonsSeparateStatements) {
  EXPECT_EQ(Texts("SELECT 1;;\n  SELECT 2 ;\n"), (Strings{"SELECT 1", "SELECT 2 "}));
  EXPECT_EQ(Texts(" \n-- nothing\n"), Strings{});
}

TEST(SqlScript, SemicolonsInQuotesAndCommentsDoNot) {
  EXPECT_EQ(Texts("SELECT 'a;''b'; SELECT \"c;\"\"d\""),
            (Strings{"SELECT 'a;''b'", "SELECT \"c;\"\"d\""}));
  EXPECT_EQ(Texts("SELECT 1 -- one; two\n, 2; SELECT 3 /* a; /* b; */ c; */"),
            (Strings{"SELECT 1 -- one; two\n, 2", "SELECT 3 /* a; /* b; */ c; */"}));
  EXPECT_EQ(Texts("SELECT $x$ a; $y$ $x$; SELECT $1"),
            (Strings{"SELECT $x$ a; $y$ $x$", "SELECT $1"}));
  EXPECT_EQ(Texts("SELECT E'a\\';b'; SELECT 'a\\'; SELECT 2"),
            (Strings{"SELECT E'a\\';b'", "SELECT 'a\\'", "SELECT 2"}));
}

TEST(SqlScript, UnclosedQuoteExtendsToTheEnd) {
  EXPECT_EQ(Texts("SELECT 1; SELECT 'a; b"), (Strings{"SELECT 1", "SELECT 'a; b"}));
  EXPECT_EQ(Texts("SELECT /* a; b"), (Strings{"SELECT /* a; b"}));
}

TEST(SqlScript, StatementsAfterCommentsHaveTheirLine) {
  const auto statements = SplitSqlScript("-- head\n\nSELECT 1;\n/* a\nb */ SELECT 2");
  ASSERT_EQ(statements.size(), 2u);
  EXPECT_EQ(statements[0].line, 3u);
  EXPECT_EQ(statements[1].line, 5u);
}

TEST(SqlScript, ErrorsNameFileLineAndStatementOnOneLine) {
  const Error error =
      ScriptError(Error{Code::kInvalid,
                        "Binder Error: no such column\nDid you mean x?\n\nLINE 3: SELECT y\n ^"},
                  "a.sql", {.text = "", .line = 10}, 2);
  EXPECT_EQ(error.message, "a.sql:12: statement 2: Binder Error: no such column Did you mean x?");
}

}  // namespace
}  // namespace muster::task
