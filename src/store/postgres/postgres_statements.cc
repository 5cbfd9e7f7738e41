#include "store/postgres/postgres_statements.h"

#include <string_view>

namespace muster::store {
namespace {

constexpr std::string_view kNow = "date_trunc('milliseconds', statement_timestamp())";
constexpr std::string_view kColumns =
    "r.queue, r.key, r.version, r.due, r.owner, r.epoch, r.attempt, r.body";

// `text` with every {name} replaced.
std::string Fill(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string filled(text);
  for (const auto& [name, value] : values) {
    const std::string mark = "{" + std::string(name) + "}";
    for (size_t at = filled.find(mark); at != std::string::npos;
         at = filled.find(mark, at + value.size())) {
      filled.replace(at, mark.size(), value);
    }
  }
  return filled;
}

// Same as LeaseFor, for this claim's attempt.
constexpr std::string_view kTake = R"(
  UPDATE {table} r
  SET owner = $4, claim_id = $5, version = r.version + $8, epoch = r.epoch + 1,
      attempt = r.attempt + 1,
      due = {now} + least($6::bigint * power(2::float8, least(r.attempt, 62)), $7::bigint)
                    * interval '1 millisecond')";

// Rows being claimed by others are skipped, not waited for. The lock re-checks each row's current
// version; a row that changed since the statement began has another ctid, and is left alone.
constexpr std::string_view kPick = R"(
  picked AS MATERIALIZED (
    SELECT ctid, due FROM {table}
    WHERE kind = $1 AND queue = $2 AND due <= statement_timestamp() {condition}
    ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED))";
constexpr std::string_view kTakePicked =
    "{take} FROM picked WHERE r.ctid = picked.ctid RETURNING {columns}";
constexpr std::string_view kFromFloor = "AND due >= $9::timestamptz";

constexpr std::string_view kTakeKey = R"({take}
  WHERE r.kind = $1 AND r.queue = $2 AND r.key = $3 AND r.due <= statement_timestamp() {condition}
  RETURNING {columns})";

constexpr std::string_view kHeld = R"(
  held AS MATERIALIZED (
    SELECT {columns} FROM {table} r
    WHERE kind = $1 AND queue = $2 AND due IS NOT NULL AND claim_id = $5))";
constexpr std::string_view kUnlessHeld = "AND NOT EXISTS (SELECT FROM held)";
constexpr std::string_view kHeldOrTaken = "SELECT * FROM held UNION ALL SELECT * FROM taken";

// A delay of -1 leaves it unchanged, -2 is DueAtOnce. A null delay makes the whole expression null.
constexpr std::string_view kDue =
    "CASE {delay} WHEN -2 THEN"
    " date_trunc('milliseconds', to_timestamp(extract(epoch FROM {now}) / 10))"
    " ELSE {now} + {delay} * interval '1 millisecond' END";

constexpr std::string_view kReplace = R"(
  UPDATE {table}
  SET version = version + 1, owner = $5, attempt = $6, body = $7,
      due = CASE WHEN $4::bigint = -1 THEN due ELSE {due} END
  WHERE kind = $1 AND key = $2 AND version = $3)";

constexpr std::string_view kReplaceMany = R"(
  UPDATE {table} r
  SET version = r.version + 1, owner = c.owner, attempt = c.attempt, body = c.body,
      due = CASE WHEN c.delay = -1 THEN r.due ELSE {due} END
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[],
              $7::json[]) AS c(kind, key, version, delay, owner, attempt, body)
  WHERE r.kind = c.kind AND r.key = c.key AND r.version = c.version
  RETURNING r.kind, r.key)";

constexpr std::string_view kCreateMany = R"(
  INSERT INTO {table} (kind, key, version, due, owner, attempt, body, queue)
  SELECT c.kind, c.key, c.version, {due}, c.owner, c.attempt, c.body, c.queue
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[],
              $7::json[], $8::text[])
       AS c(kind, key, version, delay, owner, attempt, body, queue)
  ON CONFLICT (kind, key) DO NOTHING
  RETURNING kind, key)";

constexpr std::string_view kDeleteMany = R"(
  DELETE FROM {table} r
  USING unnest($1::text[], $2::text[], $3::bigint[]) AS c(kind, key, version)
  WHERE r.kind = c.kind AND r.key = c.key AND r.version = c.version
  RETURNING r.kind, r.key)";

// No key is longer than the prefix followed by this many of the highest character.
constexpr std::string_view kScan = R"(
  SELECT {columns} FROM {table} r
  WHERE kind = $1 AND key >= $2 AND key > $3 AND key <= $2 || repeat(chr(1114111), 125)
  ORDER BY key LIMIT $4)";

}  // namespace

PostgresStatements::PostgresStatements(const std::string& space) {
  const std::string table = sql::PgIdentifier(space) + ".records";
  const auto fill = [&](std::string_view text) {
    return Fill(
        text,
        {{"take", kTake}, {"due", kDue}, {"now", kNow}, {"table", table}, {"columns", kColumns}});
  };
  const auto with = [&](std::string_view text, std::string_view name, std::string_view value) {
    return Fill(text, {{name, value}});
  };
  const std::string pick = fill(kPick);
  const std::string take_picked = fill(kTakePicked);
  const std::string take_key = fill(kTakeKey);
  const std::string held = fill(kHeld);
  const std::string held_or_taken(kHeldOrTaken);

  get = {"get", fill("SELECT {columns} FROM {table} r WHERE kind = $1 AND key = $2"), false};
  scan = {"scan", fill(kScan), false};
  now = {"now", "SELECT clock_timestamp()", false};

  claim = {"claim", "WITH" + with(pick, "condition", kFromFloor) + take_picked + ", picked.due"};
  claim_again = {"claim_again", "WITH" + held + "," + with(pick, "condition", kUnlessHeld) +
                                    ", taken AS (" + take_picked + ") " + held_or_taken};
  claim_key = {"claim_key", with(take_key, "condition", "")};
  claim_key_again = {"claim_key_again", "WITH" + held + ", taken AS (" +
                                            with(take_key, "condition", kUnlessHeld) + ") " +
                                            held_or_taken};

  replace = {"replace", with(fill(kReplace), "delay", "$4::bigint")};
  create_many = {"create_many", with(fill(kCreateMany), "delay", "c.delay")};
  replace_many = {"replace_many", with(fill(kReplaceMany), "delay", "c.delay")};
  delete_many = {"delete_many", fill(kDeleteMany)};
}

std::vector<std::pair<std::string, std::string>> PostgresSessionSettings() {
  return {{"plan_cache_mode", "force_generic_plan"},
          {"enable_seqscan", "off"},
          {"enable_bitmapscan", "off"},
          {"enable_sort", "off"},
          {"enable_hashjoin", "off"},
          {"enable_mergejoin", "off"},
          {"jit", "off"},
          {"default_transaction_isolation", "read committed"}};
}

}  // namespace muster::store
