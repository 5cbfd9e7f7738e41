#include "pipeline/snapshot/rebuild_plan.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "pipeline/snapshot/kept_fields.h"
#include "pipeline/snapshot/rebuilt_value.h"
#include "pipeline/snapshot/source_builder.h"

namespace muster::pipeline {
namespace {

using lucene::IndexedValue;

lucene::SnapshotIndex IndexOf(const std::string& mapping, const std::string& settings = "{}") {
  lucene::SnapshotIndex index;
  index.name = "index";
  index.mappings = Json::array({Json{{"_doc", Json::parse(mapping)}}});
  index.settings = Json::parse(settings);
  if (!index.settings.contains("index.version.created")) {
    index.settings["index.version.created"] = "136408427";
  }
  return index;
}

// The problems of an index without _source and with a single field `f`.
std::string ProblemOf(const std::string& field, const std::string& settings = "{}") {
  const auto plan = PlanRebuild(IndexOf(
      R"({"_source":{"enabled":false},"dynamic":"strict","properties":{"f":)" + field + "}}",
      settings));
  EXPECT_EQ(plan.problems.empty(), plan.fields.size() == 1) << field;
  std::string all;
  for (const std::string& problem : plan.problems) all += problem + ";";
  return all;
}

TEST(RebuildPlan, AcceptsFieldsThatKeepTheirValues) {
  for (const char* field : {
           R"({"type":"long"})",
           R"({"type":"keyword","fields":{"text":{"type":"text"}},"eager_global_ordinals":true})",
           R"({"type":"keyword","doc_values":false,"store":true})",
           R"({"type":"keyword","ignore_above":2147483647})",
           R"({"type":"text","store":true,"analyzer":"english"})",
           R"({"type":"date"})",
           R"({"type":"date","format":"yyyy||strict_date_optional_time"})",
           R"({"type":"date","format":"epoch_millis"})",
           R"({"type":"date_nanos"})",
           R"({"type":"ip","null_value":null,"index":false})",
           R"({"type":"boolean","ignore_malformed":false})",
       }) {
    EXPECT_EQ(ProblemOf(field), "") << field;
  }
}

TEST(RebuildPlan, RefusesFieldsThatDoNot) {
  for (const auto& [field, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"type":"text"})", "f (text without store: true);"},
           {R"({"type":"long","doc_values":false})", "f (neither doc values nor stored);"},
           {R"({"type":"long","null_value":0})", "f (null_value);"},
           {R"({"type":"long","script":"emit"})", "f (script);"},
           {R"({"type":"long","ignore_malformed":true})",
            "f (ignore_malformed leaves values out);"},
           {R"({"type":"keyword","ignore_above":256})", "f (ignore_above leaves values out);"},
           {R"({"type":"keyword","normalizer":"lower"})", "f (normalizer changes values);"},
           {R"({"type":"keyword","copy_to":"f"})", "f (copy_to adds values of other fields);"},
           {R"({"type":"scaled_float","scaling_factor":100})", "f (scaled_float is rounded);"},
           {R"({"type":"half_float"})", "f (half_float is rounded);"},
           {R"({"type":"geo_point"})", "f (type geo_point);"},
           {R"({"type":"nested"})", "f (nested objects);"},
           {R"({"type":"date","format":"yyyy/MM/dd"})", "f (date format yyyy/MM/dd);"},
           {R"({"type":"date_nanos","format":"epoch_millis"})", "f (date format epoch_millis);"},
           {R"({"type":"object","enabled":false})",
            "f (enabled: false, so its fields have no mapping);"},
           {R"({"properties":{"g":{"type":"text"}},"dynamic":"strict"})",
            "f.g (text without store: true);"},
           {R"({"properties":{},"dynamic":false})",
            "f (dynamic: false, so it may have fields without a mapping);"},
       }) {
    EXPECT_EQ(ProblemOf(field), why) << field;
  }
  EXPECT_EQ(ProblemOf(R"({"type":"long"})", R"({"index.mapping.ignore_malformed":"true"})"),
            "f (ignore_malformed leaves values out);");
  EXPECT_EQ(ProblemOf(R"({"type":"keyword"})", R"({"index.mapping.ignore_above":"9"})"),
            "f (ignore_above leaves values out);");
  EXPECT_EQ(ProblemOf(R"({"type":"long"})", R"({"index.version.created":"5061699"})"),
            "all (the index was created before version 6);");
}

TEST(RebuildPlan, OfAPrunedSourceOnlyWhatIsLeftOutMatters) {
  const auto plan_of = [](const std::string& source, const std::string& dynamic) {
    return PlanRebuild(IndexOf(R"({"_source":)" + source + R"(,"dynamic":)" + dynamic +
                               R"(,"properties":{"n":{"type":"long"},"t":{"type":"text"},
      "o":{"properties":{"n":{"type":"long"},"t":{"type":"text"}}},"p":{"type":"nested"}}})"));
  };
  const auto paths = [](const RebuildPlan& plan) {
    std::string all;
    for (const RebuiltField& field : plan.fields) all += field.path + " ";
    for (const std::string& problem : plan.problems) all += "!" + problem;
    return all;
  };
  EXPECT_EQ(paths(plan_of(R"({"excludes":["n","o.n"]})", "true")), "n o.n ");
  EXPECT_EQ(paths(plan_of(R"({"excludes":"n"})", "false")), "n ");
  EXPECT_EQ(paths(plan_of(R"({"includes":["t","o.t","p"]})", "true")), "n o.n ");
  EXPECT_EQ(paths(plan_of(R"({"includes":["t","o","p"],"excludes":["o.n"]})", "true")), "n o.n ");
  EXPECT_EQ(paths(plan_of(R"({"excludes":["o"]})", "true")), "o.n !o.t (text without store: true)");
  EXPECT_EQ(paths(plan_of(R"({"excludes":["p.*"]})", "true")), "!p (nested objects)");
  // A field without a mapping may have been left out.
  for (const char* source : {R"({"excludes":["n*"]})", R"({"excludes":["unknown"]})"}) {
    EXPECT_NE(paths(plan_of(source, "false")).find("the document (dynamic: false"),
              std::string::npos)
        << source;
  }
}

TEST(KeptFields, StarsStandForAnyText) {
  const KeptFields kept(Json::parse(R"({"includes":["a*","b.c"],"excludes":["*.secret","ab"]})"));
  for (const char* path : {"a", "ac.d", "b.c", "b.c.d"}) EXPECT_TRUE(kept.Keeps(path)) << path;
  for (const char* path : {"b", "b.d", "a.secret", "a.secret.x", "ab.c", "ab"}) {
    EXPECT_FALSE(kept.Keeps(path)) << path;
  }
}

std::string Written(RebuiltType type, const IndexedValue& value) {
  std::string text;
  const Status written = AppendRebuiltValue({.path = "f", .type = type}, value, text);
  return written ? text : "error";
}

TEST(RebuiltValue, IsWrittenExactly) {
  EXPECT_EQ(Written(RebuiltType::kInteger, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(Written(RebuiltType::kDouble, 0.1), "0.1");
  EXPECT_EQ(Written(RebuiltType::kDouble, int64_t{0x3FB999999999999A}), "0.1");
  // -1.5, -0.0 and -5.0e-324, as they are sorted.
  EXPECT_EQ(Written(RebuiltType::kDouble, int64_t{-0x3FF8000000000001}), "-1.5");
  EXPECT_EQ(Written(RebuiltType::kDouble, int64_t{-1}), "-0.0");
  EXPECT_EQ(Written(RebuiltType::kDouble, int64_t{-2}), "-5e-324");
  EXPECT_EQ(Written(RebuiltType::kDouble, 1e300), "1e+300");
  EXPECT_EQ(Written(RebuiltType::kFloat, 0.1F), "0.1");
  EXPECT_EQ(Written(RebuiltType::kFloat, int64_t{-0x3FC00001}), "-1.5");
  EXPECT_EQ(Written(RebuiltType::kFloat, 100.0F), "100.0");
  EXPECT_EQ(Written(RebuiltType::kBoolean, int64_t{1}), "true");
  EXPECT_EQ(Written(RebuiltType::kBoolean, "F"), "false");
  EXPECT_EQ(Written(RebuiltType::kText, "\"\n\xC3\x9F"), "\"\\\"\\n\xC3\x9F\"");
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{0}), "\"1970-01-01T00:00:00.000Z\"");
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{-1}), "\"1969-12-31T23:59:59.999Z\"");
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{1709164800123}), "\"2024-02-29T00:00:00.123Z\"");
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{-62167219200000}), "\"0000-01-01T00:00:00.000Z\"");
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{253402300799999}), "\"9999-12-31T23:59:59.999Z\"");
  EXPECT_EQ(Written(RebuiltType::kDateNanos, INT64_MAX), "\"2262-04-11T23:47:16.854775807Z\"");
  EXPECT_EQ(Written(RebuiltType::kEpochMillis, int64_t{-5}), "-5");
}

TEST(RebuiltValue, AddressesHaveTheirNormalForm) {
  using std::string_literals::operator""s;
  EXPECT_EQ(Written(RebuiltType::kIp, "\0\0\0\0\0\0\0\0\0\0\xFF\xFF\x0A\0\0\x01"s), "\"10.0.0.1\"");
  EXPECT_EQ(Written(RebuiltType::kIp, "\x20\x01\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\x01"s),
            "\"2001:db8::1\"");
  EXPECT_EQ(Written(RebuiltType::kIp, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"s), "\"::1\"");
}

TEST(RebuiltValue, WhatIsNotOfItsTypeIsAnError) {
  EXPECT_EQ(Written(RebuiltType::kBoolean, int64_t{2}), "error");
  EXPECT_EQ(Written(RebuiltType::kBoolean, "yes"), "error");
  EXPECT_EQ(Written(RebuiltType::kText, "\xFF"), "error");
  EXPECT_EQ(Written(RebuiltType::kText, int64_t{1}), "error");
  EXPECT_EQ(Written(RebuiltType::kInteger, 1.5), "error");
  EXPECT_EQ(Written(RebuiltType::kIp, "1.2.3.4"), "error");
  EXPECT_EQ(Written(RebuiltType::kDouble, int64_t{0x7FF0000000000000}), "error") << "infinite";
  EXPECT_EQ(Written(RebuiltType::kDate, int64_t{253402300800000}), "error") << "year 10000";
  EXPECT_EQ(Written(RebuiltType::kDate, INT64_MIN), "error");
}

// Of fields n, o.n and o.i.n, all of them integers.
std::string Built(const std::vector<std::vector<int64_t>>& numbers, const std::string& stored) {
  const auto plan = std::make_shared<RebuildPlan>(PlanRebuild(IndexOf(
      R"({"_source":{"enabled":false},"properties":{"n":{"type":"long"},"o":{"properties":{
        "n":{"type":"long"},"i":{"properties":{"n":{"type":"long"}}}}}}})")));
  SourceBuilder builder(plan);
  SourceBuilder::Values values;
  for (const auto& each : numbers) values.emplace_back(each.begin(), each.end());
  const auto built = builder.Build(values, stored);
  return built ? std::string(*built) : built.error().message;
}

TEST(SourceBuilder, BuildsObjectsOfWhatHasValues) {
  EXPECT_EQ(Built({{}, {}, {}}, ""), "{}");
  EXPECT_EQ(Built({{1, 2}, {}, {3}}, ""), R"({"n":[1,2],"o":{"i":{"n":3}}})");
}

TEST(SourceBuilder, AddsToWhatIsStored) {
  EXPECT_EQ(Built({{1}, {2}, {3}}, " {}"), R"({"n":1,"o":{"n":2,"i":{"n":3}}})");
  EXPECT_EQ(Built({{1}, {2}, {3}}, R"({ "a" : 1.0 , "o" : {"b":[ {} ]} })"),
            R"({"a":1.0,"o":{"b":[ {} ],"n":2,"i":{"n":3}},"n":1})");
  EXPECT_EQ(Built({{1}, {}, {}}, R"({"n":7,"o":[{}]})"), R"({"n":7,"o":[{}]})");
}

TEST(SourceBuilder, ObjectsThatMayHaveBeenAnArrayAreRefused) {
  EXPECT_EQ(Built({{}, {1, 2}, {}}, ""),
            "'o.n' has several values: the object that it is in may have been an array of objects");
  EXPECT_EQ(Built({{}, {1, 2}, {}}, R"({"o":{}})"), R"({"o":{"n":[1,2]}})");
  EXPECT_EQ(Built({{}, {1}, {}}, R"({"o":[{},{}]})"), "'o' is an array of objects");
  EXPECT_EQ(Built({{}, {}, {1, 2}}, R"({"o":{}})"),
            "'o.i.n' has several values: the object that it is in may have been an array of "
            "objects");
}

}  // namespace
}  // namespace muster::pipeline
