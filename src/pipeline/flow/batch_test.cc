#include <gtest/gtest.h>

#include <string>

#include "muster/pipeline.h"

namespace muster::pipeline {
namespace {

TEST(Arena, WhatItHandedOutStaysWhereItIs) {
  Arena arena;
  const std::string large(3 << 20, 'x');
  const std::string_view first = arena.Copy("first");
  const std::string_view second = arena.Copy(large);
  const std::string_view third = arena.Copy("third");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(second, large);
  EXPECT_EQ(third, "third");
}

TEST(Arena, ClearedMemoryIsUsedAgain) {
  Arena arena;
  const char* const first = arena.Allocate(1000);
  arena.Clear();
  EXPECT_EQ(arena.Allocate(1000), first);
}

TEST(Batch, KeepsItsOwnCopyOfADocument) {
  Batch batch;
  std::string body = R"({"a":1})";
  batch.Add({.id = "7", .routing = {}, .body = body, .position = "42", .defect = {}});
  body.assign("overwritten");
  ASSERT_EQ(batch.documents.size(), 1U);
  EXPECT_EQ(batch.documents[0].body, R"({"a":1})");
  EXPECT_EQ(batch.documents[0].id, "7");
  EXPECT_EQ(batch.documents[0].position, "42");
}

}  // namespace
}  // namespace muster::pipeline
