#pragma once

#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::states {

// Answers a call that waits for its token, with {"output"} or {"error", "cause"}, and wakes its
// flow. kConflict: it has another answer. kNotFound: no call waits for the token.
Status AnswerCallback(store::Store& store, const std::string& token, Json answer);

// Restarts the heartbeat timeout of such a call.
Status BeatCallback(store::Store& store, const std::string& token);

}  // namespace muster::states
