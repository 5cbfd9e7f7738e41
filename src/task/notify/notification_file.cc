#include "task/notify/notification_file.h"

#include "core/append_once.h"

namespace muster::task {

Status AppendNotification(const std::string& path, const Notification& news, FileCalls& calls) {
  const std::string key = "{\"dedupe\":" + ToJsonText(Json(news.dedupe)) + ",";
  return AppendOnce(path, news.Line(), key, calls);
}

}  // namespace muster::task
