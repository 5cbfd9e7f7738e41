#pragma once

#include <string>

#include "core/file_calls.h"
#include "muster/result.h"
#include "task/notify/notification.h"

namespace muster::task {

// Appends the notification's line to a file, once per key, and syncs it: success means that the
// line is on disk. Any number of processes may do so at the same time.
Status AppendNotification(const std::string& path, const Notification& news,
                          FileCalls& calls = SystemFileCalls());

}  // namespace muster::task
