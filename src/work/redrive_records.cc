// The records of redrives.

#include <cstdio>

#include "core/base64.h"
#include "core/record_fields.h"
#include "work/records.h"

namespace muster::work {
namespace {

constexpr size_t kLetterBytes = 8;
constexpr size_t kMostRedrivenItems = 500;  // in one record

// Eight bytes each, big-endian.
template <class Letters>
std::string PackLetters(const Letters& letters) {
  std::string bytes;
  bytes.reserve(letters.size() * kLetterBytes);
  for (const uint64_t letter : letters) {
    for (size_t i = kLetterBytes; i-- > 0;) bytes += static_cast<char>(letter >> (8 * i));
  }
  return EncodeBase64(bytes);
}

template <class Letters>
bool UnpackLetters(const std::string& text, Letters& letters) {
  const auto bytes = DecodeBase64(text);
  if (!bytes || bytes->size() % kLetterBytes != 0) return false;
  for (size_t at = 0; at < bytes->size(); at += kLetterBytes) {
    uint64_t letter = 0;
    for (size_t i = 0; i < kLetterBytes; ++i) {
      letter = letter << 8 | static_cast<unsigned char>((*bytes)[at + i]);
    }
    letters.insert(letters.end(), letter);
  }
  return true;
}

template <class Body>
void PutLetters(const Body& from, Json& json, std::string_view name) {
  json[name] = PackLetters(from.letters);
}

template <class Body>
void TakeLetters(JsonFields& fields, Body& to, std::string_view name) {
  std::string text;
  fields.Read(name, text);
  if (!UnpackLetters(text, to.letters)) fields.Mistake("its letters are damaged");
}

void PutRedrivenItems(const RedriveBody& from, Json& json, std::string_view name) {
  Json by_item = Json::object();
  for (const auto& [item, outcome] : from.items) {
    by_item[item] = Json::array({outcome.written, outcome.skipped});
    if (outcome.added != 0) by_item[item].push_back(outcome.added);
  }
  json[name] = std::move(by_item);
}

void TakeRedrivenItems(JsonFields& fields, RedriveBody& to, std::string_view name) {
  std::map<std::string, std::vector<int64_t>> by_item;
  fields.Read(name, by_item);
  for (const auto& [item, counts] : by_item) {
    if (counts.size() != 2 && counts.size() != 3) {
      fields.Mistake("its items are damaged");
      continue;
    }
    to.items[item] = {counts[0], counts[1], counts.size() == 3 ? counts[2] : 0};
  }
}

constexpr RecordTable<RedriveBody, 5> kRedriveTable{
    kFormat,
    {{
        {"letters", PutLetters<RedriveBody>, TakeLetters<RedriveBody>},
        Required<RedriveBody, [](auto& body) -> auto& { return body.total.written; }>("written"),
        Always<RedriveBody, [](auto& body) -> auto& { return body.total.skipped; }>("skipped"),
        {"items", PutRedrivenItems, TakeRedrivenItems},
        Field<RedriveBody, [](auto& body) -> auto& { return body.total.added; }>("added"),
    }}};

// Each letter has an item.
void TakeItemsOfLetters(JsonFields& fields, RedrivePageBody& to, std::string_view name) {
  fields.Read(name, to.item_of);
  bool whole = to.item_of.size() == to.letters.size();
  for (const int64_t item : to.item_of) {
    whole = whole && item >= 0 && item < static_cast<int64_t>(to.items.size());
  }
  if (!whole) fields.Mistake("its items are damaged");
}

constexpr RecordTable<RedrivePageBody, 6> kRedrivePageTable{
    kFormat,
    {{
        Required<RedrivePageBody, &RedrivePageBody::number>("number"),
        Always<RedrivePageBody, &RedrivePageBody::target>("target"),
        {"letters", PutLetters<RedrivePageBody>, TakeLetters<RedrivePageBody>},
        Always<RedrivePageBody, &RedrivePageBody::items>("items"),
        {"item_of",
         [](const RedrivePageBody& from, Json& json, std::string_view name) {
           json[name] = from.item_of;
         },
         TakeItemsOfLetters},
        Always<RedrivePageBody, &RedrivePageBody::failed>("failed"),
    }}};

}  // namespace

RedriveBody::Outcome& RedriveBody::Outcome::operator+=(const Outcome& other) {
  written += other.written;
  skipped += other.skipped;
  added += other.added;
  return *this;
}

void RedriveBody::Count(const std::string& item, const Outcome& outcome) {
  total += outcome;
  if (items.size() >= kMostRedrivenItems && !items.contains(item)) return;
  items[item] += outcome;
}

std::string RedriveBody::ToJson() const { return kRedriveTable.ToText(*this); }

Result<RedriveBody> RedriveBody::FromJson(const std::string& json) {
  return kRedriveTable.Parse(json, "a redrive");
}

std::string RedrivePageBody::ToJson() const { return kRedrivePageTable.ToText(*this); }

Result<RedrivePageBody> RedrivePageBody::FromJson(const std::string& json) {
  return kRedrivePageTable.Parse(json, "a page of a redrive");
}

std::string RedriveLeaseKey(const std::string& run) { return run + "/lease"; }

std::string RedriveKey(const std::string& run, uint64_t letter) {
  char digits[4];
  std::snprintf(digits, sizeof digits, "/%02x", static_cast<unsigned>(letter >> 56));
  return run + digits;
}

}  // namespace muster::work
