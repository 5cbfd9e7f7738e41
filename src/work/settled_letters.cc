#include "work/settled_letters.h"

#include <algorithm>
#include <map>

#include "muster/store.h"
#include "store/store.h"
#include "work/records.h"

namespace muster::work {

Status SettledLetters::Load() {
  for (store::RecordScan redrives(store_, kRedriveKind, run_ + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, redrives.Next());
    if (!record) return {};
    MUSTER_ASSIGN(const RedriveBody body, RedriveBody::FromJson(record->body));
    settled_.insert(body.letters.begin(), body.letters.end());
  }
}

Status SettledLetters::Add(const std::vector<SettledLetter>& letters,
                           const pipeline::Counts& counts) {
  if (letters.empty()) return {};
  const auto many = static_cast<int64_t>(letters.size());
  const int64_t skipped = std::min(counts.skipped, many);
  Share share{.skipped = skipped,
              .first = letters.front().identity,
              .more = {.written = counts.written - (many - skipped),
                       .skipped = counts.skipped - skipped,
                       .added = counts.added}};
  std::map<std::string, std::vector<SettledLetter>> by_key;
  for (const SettledLetter& letter : letters)
    by_key[RedriveKey(run_, letter.identity)].push_back(letter);
  for (const auto& [key, some] : by_key) MUSTER_TRY(AddTo(key, some, share));
  return {};
}

Status SettledLetters::AddTo(const std::string& key, const std::vector<SettledLetter>& letters,
                             Share& share) {
  int64_t left = share.skipped;
  const auto update =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    RedriveBody body;
    if (stored) {
      MUSTER_ASSIGN(body, RedriveBody::FromJson(stored->body));
    }
    left = share.skipped;
    const size_t before = body.letters.size();
    for (const SettledLetter& letter : letters) {
      if (!body.letters.insert(letter.identity).second) continue;
      const bool was_skipped = left > 0;
      RedriveBody::Outcome outcome{.written = was_skipped ? 0 : 1, .skipped = was_skipped ? 1 : 0};
      if (letter.identity == share.first) outcome += share.more;
      body.Count(letter.item, outcome);
      left = std::max<int64_t>(0, left - 1);
    }
    if (body.letters.size() == before) return std::nullopt;
    store::Record record = stored ? *std::move(stored)
                                  : store::Record{.kind = kRedriveKind, .queue = run_, .key = key};
    record.body = body.ToJson();
    return store::Change::Put(std::move(record), store::Due::Never());
  };
  MUSTER_TRY(store::Update(store_, kRedriveKind, key, update));
  share.skipped = left;
  for (const SettledLetter& letter : letters) settled_.insert(letter.identity);
  return {};
}

}  // namespace muster::work
