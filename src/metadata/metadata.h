// What other modules may use of metadata, beside its public headers.
#pragma once

#include "metadata/cluster_version.h"  // IWYU pragma: export
#include "metadata/job.h"              // IWYU pragma: export
#include "metadata/mappings.h"         // IWYU pragma: export
#include "metadata/object.h"           // IWYU pragma: export
#include "metadata/rule_set.h"         // IWYU pragma: export
#include "metadata/target.h"           // IWYU pragma: export
