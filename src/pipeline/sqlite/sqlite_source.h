#pragma once

#include <memory>

#include "core/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// sqlite:FILE#TABLE: one table or, with `?key=COLUMN,COLUMN`, unique and not null, a view. Without
// #TABLE: all tables of the file.
//
// Also accepts a sink's URL: the sink's own parameters are ignored.
//
// Tables are read in rowid order, those without a rowid in primary key order. A position means
// "after this row"; for a table without an INTEGER PRIMARY KEY it is valid until the file is
// vacuumed. Each partition is read from the snapshot taken when its reading begins.
Result<std::unique_ptr<Source>> OpenSqliteSource(const Url& url, Env& env);

}  // namespace muster::pipeline
