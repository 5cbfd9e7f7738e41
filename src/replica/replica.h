// What other modules may use of replica, beside its public headers: operations on sets for people,
// and for the simulator what workers are made of.
#pragma once

#include "replica/memory_read_model.h"  // IWYU pragma: export
#include "replica/operations.h"         // IWYU pragma: export
#include "replica/rebuild.h"            // IWYU pragma: export
#include "replica/replica_file.h"       // IWYU pragma: export
#include "replica/worker.h"             // IWYU pragma: export
