// What most files include anyway, parsed once for all of them. Only headers that seldom change: a
// change of one of these compiles everything again.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "muster/env.h"
#include "muster/json.h"
#include "muster/result.h"
