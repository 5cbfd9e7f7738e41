// What other modules may use of task, beside its public headers.
#pragma once

#include "task/aws/aws_client.h"           // IWYU pragma: export
#include "task/aws/aws_executor.h"         // IWYU pragma: export
#include "task/call/exec_executor.h"       // IWYU pragma: export
#include "task/call/http_executor.h"       // IWYU pragma: export
#include "task/call/sql_executor.h"        // IWYU pragma: export
#include "task/call/status_executor.h"     // IWYU pragma: export
#include "task/data/copy_executor.h"       // IWYU pragma: export
#include "task/data/reconcile_executor.h"  // IWYU pragma: export
#include "task/data/transform_executor.h"  // IWYU pragma: export
#include "task/notify/notify_executor.h"   // IWYU pragma: export
#include "task/notify/outbox.h"            // IWYU pragma: export
