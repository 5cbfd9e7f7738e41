#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster {

// salesforce+https://HOST/OBJECT?client_id=…: the rows of an object, or of every object that can be
// queried if none is named, by a query job of the Bulk API 2.0. Records become objects with a text,
// or null, for each field; the id is theirs. An object is one partition. Positions hold the number
// of rows before them, the job and the page: a job's results can be read again for seven days.
Result<std::unique_ptr<Source>> OpenSalesforceSource(const Url& url, Env& env);

}  // namespace muster
