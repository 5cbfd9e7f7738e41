#include "work/settled_letters.h"

#include <algorithm>
#include <map>

#include "store/store.h"
#include "work/records.h"

namespace muster::work {
namespace {}  // namespace

Status SettledLetters::Load() {
  for (std::string after;;) {
    MUSTER_ASSIGN(const auto records,
                  store_.Scan(kRedriveKind, run_ + "/", after, store::kMaxBatch));
    for (const store::Record& record : records) {
      MUSTER_ASSIGN(const RedriveBody body, RedriveBody::FromJson(record.body));
      settled_.insert(body.letters.begin(), body.letters.end());
    }
    if (records.size() < static_cast<size_t>(store::kMaxBatch)) return {};
    after = records.back().key;
  }
}

Status SettledLetters::Add(const std::vector<uint64_t>& letters, int64_t skipped) {
  std::map<std::string, std::vector<uint64_t>> by_key;
  for (const uint64_t letter : letters) by_key[RedriveKey(run_, letter)].push_back(letter);
  for (auto& [key, some] : by_key) MUSTER_TRY(AddTo(key, std::move(some), skipped));
  return {};
}

// `skipped` are those not counted in any record yet.
Status SettledLetters::AddTo(const std::string& key, std::vector<uint64_t> letters,
                             int64_t& skipped) {
  int64_t skips = 0;
  const auto update =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    RedriveBody body;
    if (stored) {
      MUSTER_ASSIGN(body, RedriveBody::FromJson(stored->body));
    }
    const auto before = static_cast<int64_t>(body.letters.size());
    body.letters.insert(letters.begin(), letters.end());
    const int64_t added = static_cast<int64_t>(body.letters.size()) - before;
    skips = std::min(skipped, added);
    if (added == 0) return std::nullopt;
    body.skipped += skips;
    body.written += added - skips;
    store::Record record = stored ? *std::move(stored)
                                  : store::Record{.kind = kRedriveKind, .queue = run_, .key = key};
    record.body = body.ToJson();
    return store::Change::Put(std::move(record), store::Due::Never());
  };
  MUSTER_TRY(store::Update(store_, kRedriveKind, key, update));
  skipped -= skips;
  settled_.insert(letters.begin(), letters.end());
  return {};
}

}  // namespace muster::work
