#include "events/backends.h"
#include "store/store_url.h"

namespace muster {

Result<std::unique_ptr<EventLog>> OpenEventLog(const std::string& text, Env& env,
                                               const EventLogOptions& options) {
  auto url = ParseStoreUrl(text);
  if (!url) return url.error().Within("event log");
  if (options.slots < 0 || options.slots > kMaxSlots) {
    return Error{Code::kInvalid, "an event log has up to " + std::to_string(kMaxSlots) +
                                     " slots, not " + std::to_string(options.slots)};
  }
  const int new_slots = options.slots == 0 ? kDefaultSlots : options.slots;
  if (options.table && url->backend != StoreUrl::Backend::kPostgres) {
    return Error{Code::kInvalid, "only a PostgreSQL log can be read from a table of others",
                 "give a postgresql:// URL, or leave the table out"};
  }
  switch (url->backend) {
    case StoreUrl::Backend::kMemory:
      return NewMemoryEventLog(env, new_slots);
    case StoreUrl::Backend::kSqlite:
      return OpenSqliteEventLog(url->target, url->space, env, options.slots);
    case StoreUrl::Backend::kPostgres:
      if (options.table) {
        return OpenPostgresTableLog(url->target, env, new_slots, *options.table);
      }
      return OpenPostgresEventLog(url->target, url->space, env, options.slots);
    default:
      break;
  }
  return Error{Code::kInvalid, "this kind of store holds no event log",
               "use memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE"};
}

}  // namespace muster
