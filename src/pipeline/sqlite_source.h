#pragma once

#include <memory>

#include "base/url.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// sqlite:FILE#TABLE: one table, or with `?key=COLUMN,COLUMN`, unique and never null, a view.
// Without #TABLE: all tables of the file.
//
// A sink's URL is one of a source, too: its own parameters are passed over.
//
// Tables are read in the order of their rowid, those without one in the order of their primary key.
// A position says "after this row"; that of a table without an INTEGER PRIMARY KEY holds until the
// file is vacuumed. Each partition is read as of the moment when its reading begins.
Result<std::unique_ptr<Source>> OpenSqliteSource(const Url& url, Env& env);

}  // namespace muster
