#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::pipeline {

// salesforce+https://HOST/OBJECT?client_id=…: the rows of an object, or of every queryable object
// if none is named, read with a Bulk API 2.0 query job. Records become objects with a string or
// null per field, and keep their id. An object is one partition. Positions contain the number of
// rows before them, the job and the page: a job's results stay readable for seven days.
Result<std::unique_ptr<Source>> OpenSalesforceSource(const Url& url, Env& env);

}  // namespace muster::pipeline
