#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::states {

// The answer to a call that waits for its token: its output, or why it has failed.
struct CallbackAnswer {
  std::optional<Json> output = {};
  std::string error = {};
  std::string cause = {};
};

// Answers a call, and wakes its flow. kConflict: it has another answer. kNotFound: no call waits
// for the token.
Status AnswerCallback(store::Store& store, const std::string& token, const CallbackAnswer& answer);

// Restarts the heartbeat timeout of such a call.
Status BeatCallback(store::Store& store, const std::string& token);

// What was stored for a token. None: no answer, no heartbeat.
Result<std::optional<CallbackAnswer>> FindAnswer(store::Store& store, const std::string& token);
Result<std::optional<WallTime>> FindBeat(store::Store& store, const std::string& token);

}  // namespace muster::states
