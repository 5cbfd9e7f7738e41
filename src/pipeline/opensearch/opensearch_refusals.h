#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "muster/result.h"

namespace muster::pipeline {

// Why a source does not read what a cluster has. `place` names the cluster.

// Of an index as GET /NAME shows it; none: it can be read. `pruned`: also if documents lack fields
// that were left out of _source.
std::optional<Error> RefusalOf(const std::string& place, const std::string& index,
                               const Json& metadata, bool pruned);
Error IsClosed(const std::string& place, const std::string& index);
Error IsNotShown(const std::string& place, const std::string& index);
Error IsPartial(const std::string& place, const std::string& index, const std::string& alias);

// The same, of an index of a data stream.
Error OfStream(Error refusal, const std::string& index, const std::string& stream);

// Of an index that the URL's pattern does not select.
std::string WhyUnlisted(const std::string& index, const Json& metadata);

}  // namespace muster::pipeline
