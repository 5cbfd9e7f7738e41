#include "muster/result.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(Version, MacrosMatchTheProject) {
  EXPECT_STREQ(MUSTER_VERSION_STRING, MUSTER_PROJECT_VERSION);
  EXPECT_EQ(std::to_string(MUSTER_VERSION_MAJOR) + "." + std::to_string(MUSTER_VERSION_MINOR) +
                "." + std::to_string(MUSTER_VERSION_PATCH),
            MUSTER_VERSION_STRING);
}

}  // namespace
}  // namespace muster
