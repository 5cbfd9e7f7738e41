#pragma once

#include <memory>

#include "core/url.h"
#include "lucene/lucene.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::pipeline {

// The files of the repository that a source's URL names.
Result<std::unique_ptr<lucene::Blobs>> OpenSnapshotBlobs(const Url& url, Env& env);

// kInvalid: the URL has a parameter that is unknown, or an impossible value.
Status CheckSnapshotParameters(const Url& url);

}  // namespace muster::pipeline
