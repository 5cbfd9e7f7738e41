#include "core/record_fields.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

enum class Colour { kRed, kGreen };
constexpr EnumNames<Colour, 2> kColours{{{{Colour::kRed, "red"}, {Colour::kGreen, "green"}}}};

struct Thing {
  struct Inner {
    std::string text = {};
  };
  std::string name = {};
  Colour colour = Colour::kRed;
  Inner inner = {};
  std::optional<int64_t> count = {};
  std::map<std::string, int64_t> parts = {};
  bool open = false;
};

constexpr RecordTable<Thing, 6> kTable{
    RecordFormat{"thing", 2},
    {{Required<Thing, &Thing::name>("name"), Named<Thing, &Thing::colour, kColours>("colour"),
      Field<Thing, [](auto& thing) -> auto& { return thing.inner.text; }>("text"),
      Field<Thing, &Thing::count>("count"), Field<Thing, &Thing::parts>("parts"),
      Field<Thing, &Thing::open>("open")}}};

TEST(RecordFields, WritesItsVersionAndNonDefaultFields) {
  EXPECT_EQ(ToJsonText(kTable.ToJson({})), R"({"v":2,"name":"","colour":"red"})");
  EXPECT_EQ(ToJsonText(kTable.ToJson({.name = "n",
                                      .colour = Colour::kGreen,
                                      .inner = {.text = "t"},
                                      .count = 0,
                                      .parts = {{"a", 1}},
                                      .open = true})),
            R"({"v":2,"name":"n","colour":"green","text":"t","count":0,"parts":{"a":1},)"
            R"("open":true})");
  EXPECT_EQ(ToJsonText(kTable.Members({.name = "n"})), R"({"name":"n","colour":"red"})");
}

TEST(RecordFields, ReadsWhatItWritesAndWhatOlderVersionsWrote) {
  const Thing thing{.name = "n",
                    .colour = Colour::kGreen,
                    .inner = {.text = "t"},
                    .count = 7,
                    .parts = {{"a", 1}},
                    .open = true};
  const auto again = kTable.Parse(ToJsonText(kTable.ToJson(thing)), "it");
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(kTable.ToJson(*again), kTable.ToJson(thing));
  const auto old = kTable.Parse(R"({"name":"n","colour":"green","gone":1})", "it");
  ASSERT_TRUE(old) << old.error().ToString();
  EXPECT_EQ(old->name, "n");
  EXPECT_EQ(old->colour, Colour::kGreen);
}

struct Leaf {
  int64_t size = 0;
};
constexpr RecordFields<Leaf, 1> kLeaf{{Required<Leaf, &Leaf::size>("size")}};

struct Tree {
  int64_t age = 0;
  std::optional<Colour> colour = {};
  std::string bytes = {};
  std::vector<std::string> names = {};
  Leaf leaf = {};
  std::optional<Leaf> second = {};
};
constexpr RecordTable<Tree, 6> kTree{
    RecordFormat{"tree", 1},
    {{Always<Tree, &Tree::age>("age"), Field<Tree, &Tree::colour, ByName<kColours>>("colour"),
      Field<Tree, &Tree::bytes, Escaped>("bytes"), Always<Tree, &Tree::names, Escaped>("names"),
      Required<Tree, &Tree::leaf, Nested<kLeaf>>("leaf"),
      Field<Tree, &Tree::second, Nested<kLeaf>>("second")}}};

TEST(RecordFields, HaveForms) {
  EXPECT_EQ(ToJsonText(kTree.Members({})), R"({"age":0,"names":[],"leaf":{"size":0}})");
  const std::string text = R"({"v":1,"age":3,"colour":"green","bytes":"%FF","names":["a%25","b"],)"
                           R"("leaf":{"size":1},"second":{"size":0}})";
  const Tree tree{.age = 3,
                  .colour = Colour::kGreen,
                  .bytes = "\xff",
                  .names = {"a%", "b"},
                  .leaf = {.size = 1},
                  .second = Leaf()};
  EXPECT_EQ(ToJsonText(kTree.ToJson(tree)), text);
  const auto again = kTree.Parse(text, "it");
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(ToJsonText(kTree.ToJson(*again)), text);
  EXPECT_EQ(again->bytes, "\xff");
  EXPECT_TRUE(kTree.Parse(R"({"leaf":{"size":1}})", "it")) << "the others may be missing";
}

TEST(RecordFields, ReportMistakesInTheirForms) {
  const auto wrong = [](const std::string& members) {
    const auto read = kTree.Parse("{" + members + "}", "it");
    return read
               ? std::string()
               : read.error().message.substr(std::string("it is damaged or not Muster's: ").size());
  };
  EXPECT_EQ(wrong(R"("age":1)"), "'leaf' is missing");
  EXPECT_EQ(wrong(R"("leaf":{})"), "in 'leaf' 'size' is missing");
  EXPECT_EQ(wrong(R"("leaf":1)"), "in 'leaf' it is not an object");
  EXPECT_EQ(wrong(R"("leaf":{"size":1},"second":{"size":"x"})"),
            "in 'second' 'size' is not an integer in range");
  EXPECT_EQ(wrong(R"("leaf":{"size":1},"bytes":"%zz")"), "'bytes' is damaged");
  EXPECT_EQ(wrong(R"("leaf":{"size":1},"names":["%zz"])"), "'names' is damaged");
  EXPECT_EQ(wrong(R"("leaf":{"size":1},"colour":"blue")"), "'colour' cannot be 'blue'");
}

TEST(RecordFields, RefusesANewerVersionByNameAndNumber) {
  const auto newer = kTable.Parse(R"({"v":3,"shape":"unknown"})", "the thing 'x'");
  ASSERT_FALSE(newer);
  EXPECT_TRUE(IsNewer(newer.error()));
  EXPECT_EQ(newer.error().message,
            "the thing 'x' was written by a newer version of muster: in format 3, and this one "
            "reads up to format 2");
  EXPECT_EQ(newer.error().hint, "use the version of muster that wrote it, or a newer one");
}

TEST(RecordFields, ReportsEveryMistake) {
  const auto wrong = [](std::string_view text) {
    const auto read = kTable.Parse(text, "it");
    EXPECT_FALSE(read);
    if (read) return std::string();
    EXPECT_EQ(read.error().code, Code::kCorrupt);
    return read.error().message;
  };
  EXPECT_EQ(wrong("nothing"), "it is damaged or not Muster's: it is not JSON");
  EXPECT_EQ(wrong("{}"), "it is damaged or not Muster's: 'name' is missing");
  EXPECT_EQ(wrong(R"({"name":"n"})"), "it is damaged or not Muster's: 'colour' is missing");
  EXPECT_EQ(wrong(R"({"name":"n","colour":"blue"})"),
            "it is damaged or not Muster's: 'colour' cannot be 'blue'");
  EXPECT_EQ(wrong(R"({"name":"n","colour":"red","open":1})"),
            "it is damaged or not Muster's: 'open' is not true or false");
}

}  // namespace
}  // namespace muster
