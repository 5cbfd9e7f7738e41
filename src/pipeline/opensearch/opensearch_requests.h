#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "core/json.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// Requests that only read. Each is repeated until it is answered: waits for a cluster that is busy
// or restarting, for as long as it wants, up to a minute at a time. kCancelled: stopped while
// waiting.
Result<net::OpenSearchAnswer> Ask(net::OpenSearchClient& client, Env& env,
                                  const net::OpenSearchCall& call, const std::stop_token& stop);
Result<Json> AskForJson(net::OpenSearchClient& client, Env& env, const net::OpenSearchCall& call,
                        const std::stop_token& stop = {});

// Sleeps; false: stopped meanwhile, also by an interrupt (core/interrupt.h).
bool PauseOrStop(Env& env, std::chrono::nanoseconds duration, const std::stop_token& stop);

// What the cluster says of itself; null: the user may not see it.
Result<Json> AboutCluster(net::OpenSearchClient& client, Env& env);

// Identifies the cluster, by AboutCluster. Empty: it has no identity, or the user may not see it.
// kUnavailable: it is still forming.
Result<std::string> ClusterUuidIn(const net::OpenSearchClient& client, const Json& about);

// Identifies an index, by the response to GET NAME/_settings. Empty: it is about other indices.
std::string IndexUuidIn(const Json& settings, const std::string& index);

// For a response that does not match the API's documentation.
Error Unexpected(const net::OpenSearchClient& client, const std::string& what);

}  // namespace muster::pipeline
