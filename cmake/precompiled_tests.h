// The same for tests.
#pragma once

#include <gtest/gtest.h>

#include "precompiled.h"
