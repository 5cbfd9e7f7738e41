#include "task/notify/outbox.h"

#include "core/backoff.h"
#include "core/record_fields.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "core/url.h"
#include "store/store.h"

namespace muster::task {
namespace {

constexpr const char* kKind = "notification";
constexpr milliseconds kLease{60'000};
constexpr milliseconds kCommitPatience{5'000};
constexpr Backoff::Pauses kPauses{.first = milliseconds(2'000), .longest = milliseconds(300'000)};
constexpr int kPage = 1000;
constexpr size_t kKeyDigits = 32;

constexpr RecordTable<Letter, 8> kLetterTable{
    RecordFormat{kKind, 1},
    {{Required<Letter, [](auto& letter) -> auto& { return letter.news.target; }>("target"),
      Field<Letter, [](auto& letter) -> auto& { return letter.news.subject; }>("subject"),
      Field<Letter, [](auto& letter) -> auto& { return letter.news.message; }>("message"),
      Field<Letter, [](auto& letter) -> auto& { return letter.news.dedupe; }>("dedupe"),
      Field<Letter, [](auto& letter) -> auto& { return letter.news.topic; }>("topic"),
      Field<Letter, [](auto& letter) -> auto& { return letter.news.references; }>("references"),
      Field<Letter, &Letter::delivered>("delivered"), Field<Letter, &Letter::error>("error")}}};

std::string PrefixOf(const std::string& migration) { return PercentEncode(migration) + "/"; }

}  // namespace

Status Outbox::Add(const std::string& migration, const Notification& news) {
  const std::string name = Sha256Hex(news.dedupe + "\n" + news.target).substr(0, kKeyDigits);
  const store::Record record{.kind = kKind,
                             .queue = migration,
                             .key = PrefixOf(migration) + name,
                             .body = ToJsonText(kLetterTable.ToJson({.news = news}))};
  // A conflict means that an earlier call has added it.
  const auto written = store_.Write({{store::Change::Put(record, store::Due::AtOnce())}});
  return written ? Status() : Status(written.error());
}

Result<std::optional<store::Lease>> Outbox::Take(const std::string& migration,
                                                 std::stop_token stop) {
  const store::LeaseRequest request{.kind = kKind,
                                    .queue = migration,
                                    .owner = "courier",
                                    .terms = {.lease = kLease, .max_lease = kLease}};
  MUSTER_ASSIGN(auto taken, store::Lease::Claim(store_, request, env_, std::move(stop)));
  if (taken.empty()) return std::nullopt;
  return std::move(taken.front());
}

Result<Letter> Outbox::Read(const store::Record& record) {
  return kLetterTable.Parse(record.body, "the notification '" + record.key + "'");
}

Status Outbox::Settle(store::Lease& lease, const Status& delivered, bool tried) {
  auto letter = Read(lease.record());
  if (!letter) return Return(lease, letter.error());
  store::Due due = store::Due::AtOnce();
  if (delivered) {
    letter->delivered = true;
    letter->error.clear();
    due = store::Due::Never();
  } else if (tried) {
    letter->error = Redact(delivered.error().ToString());
    due = store::Due::After(kPauses.After(lease.attempt()));
  }
  return Commit(lease, ToJsonText(kLetterTable.ToJson(*letter)), due);
}

Status Outbox::Return(store::Lease& lease, const Error& unreadable) {
  const store::Due due =
      IsNewer(unreadable) ? store::Due::After(kPauses.longest) : store::Due::Never();
  return Commit(lease, lease.body(), due);
}

// If this fails, it is delivered again: receivers recognise it by its key.
Status Outbox::Commit(store::Lease& lease, std::string body, store::Due due) {
  store::Record next = lease.record();
  next.owner.clear();
  next.body = std::move(body);
  // A delivery that took longer than the lease counts, unless another process has claimed the
  // letter.
  lease.SetDeadline(env_.MonoNow() + kCommitPatience);
  return lease.Commit(std::move(next), due);
}

Status Outbox::TakeBack(const std::string& migration) {
  for (std::string after;;) {
    MUSTER_ASSIGN(auto page, store_.Scan(kKind, PrefixOf(migration), after, kPage));
    std::vector<store::Change> changes;
    for (store::Record& record : page) {
      after = record.key;
      if (record.owner.empty()) continue;
      record.owner.clear();
      changes.push_back(store::Change::Put(std::move(record), store::Due::AtOnce()));
    }
    if (!changes.empty()) {
      // A conflict: its claimer has released it meanwhile.
      MUSTER_TRY(store_.Write(changes));
    }
    if (page.size() < static_cast<size_t>(kPage)) return {};
  }
}

Result<std::vector<Letter>> Outbox::List(const std::string& migration) {
  std::vector<Letter> letters;
  for (store::RecordScan records(store_, kKind, PrefixOf(migration));;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, records.Next());
    if (!record) return letters;
    auto letter = Read(*record);
    if (letter) {
      letters.push_back(*std::move(letter));
    } else {
      letters.emplace_back().error = letter.error().ToString();
    }
  }
}

}  // namespace muster::task
