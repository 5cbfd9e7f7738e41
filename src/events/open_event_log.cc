#include "events/backends.h"
#include "store/store.h"

namespace muster::events {

Result<std::unique_ptr<EventLog>> OpenEventLog(const std::string& text,
                                               const EventLogOptions& options, Env& env) {
  auto url = store::ParseStoreUrl(text);
  if (!url) return url.error().Within("event log");
  if (options.slots < 0 || options.slots > kMaxSlots) {
    return Error{Code::kInvalid, "an event log has up to " + std::to_string(kMaxSlots) +
                                     " slots, not " + std::to_string(options.slots)};
  }
  if (options.read_bytes == 0) {
    return Error{Code::kInvalid, "the byte limit of a read must be at least 1"};
  }
  EventLogOptions all = options;
  if (all.slots == 0) all.slots = kDefaultSlots;
  if (options.table && url->backend != store::StoreUrl::Backend::kPostgres) {
    return Error{Code::kInvalid, "only a PostgreSQL log can be read from another library's table",
                 "give a postgresql:// URL, or leave the table out"};
  }
  switch (url->backend) {
    case store::StoreUrl::Backend::kMemory:
      return NewMemoryEventLog(env, all.slots, all.read_bytes);
    case store::StoreUrl::Backend::kSqlite:
      return OpenSqliteEventLog(url->target, url->space, env, options);
    case store::StoreUrl::Backend::kPostgres:
      if (options.table) return OpenPostgresTableLog(url->target, env, all);
      return OpenPostgresEventLog(url->target, url->space, env, options);
    default:
      break;
  }
  return Error{Code::kInvalid, "this kind of store has no event log",
               "use memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE"};
}

}  // namespace muster::events
