#include "pipeline/flow/dead_letter_file.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/json_scan.h"
#include "core/number.h"
#include "core/sha256.h"
#include "pipeline/flow/shards.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

constexpr int64_t kMaxNamed = 10;
// The latest start that versions of documents have room for.
constexpr int64_t kLatestMs = (int64_t{1} << 42) - 1;

struct Letter {
  LetterGroup group;
  LetterPlace place;
  std::string id;
  std::string routing;
  std::string body;
  std::string defect;  // why there is no body
  int64_t version = 0;
  bool null_is_json = false;
};

// Reads an optional field into `value`. False: wrong type.
bool Take(const Json& json, const char* name, bool& value) {
  const auto found = json.find(name);
  if (found == json.end()) return true;
  if (found->is_boolean()) value = found->get<bool>();
  return found->is_boolean();
}
bool Take(const Json& json, const char* name, int64_t& value) {
  const auto found = json.find(name);
  if (found == json.end()) return true;
  if (found->is_number_integer()) value = found->get<int64_t>();
  return found->is_number_integer();
}

// Positions are relative to the shard, whichever part of it an item covers. One of several
// documents that were made of one has that one's position, and may have its id.
uint64_t IdentityOf(const Letter& letter) {
  const auto item = WorkItemName::Parse(letter.place.item);
  const std::string shard = item ? std::to_string(item->shard) : "";
  std::string name = letter.group.run + "\n" + letter.place.collection + "\n" + shard + "\n" +
                     letter.place.position + "\n" + letter.id;
  if (letter.place.part != 0) name += "\n" + std::to_string(letter.place.part);
  uint64_t identity = 0;
  for (const char digit : Sha256Hex(name).substr(0, 16)) {
    identity = identity << 4 | static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return identity;
}

// None: not a complete dead letter. kInvalid: a newer version of muster wrote it; `what` names it.
Result<std::optional<Letter>> Parse(const std::string& line, const std::string& what) {
  const auto parts = LetterLine::Of(line);
  if (!parts) return std::optional<Letter>();
  const Json& head = parts->head;
  MUSTER_TRY(CheckVersion(VersionOf(head), kLetterFormat, what));
  Letter letter{.group = {.run = TextIn(head, letter_fields::kRun),
                          .target = TextIn(head, letter_fields::kTarget)},
                .place = {.collection = TextIn(head, letter_fields::kCollection),
                          .item = TextIn(head, letter_fields::kItem),
                          .position = TextIn(head, letter_fields::kPosition)},
                .id = TextIn(head, letter_fields::kId),
                .routing = TextIn(head, letter_fields::kRouting),
                .body = {},
                .defect = {}};
  if (letter.place.collection.empty() || !Take(head, letter_fields::kPart, letter.place.part) ||
      !Take(head, letter_fields::kTransformed, letter.group.transformed) ||
      !Take(head, letter_fields::kSinceMs, letter.group.since_ms) ||
      !Take(head, letter_fields::kFollows, letter.place.follows) ||
      !Take(head, letter_fields::kDeleted, letter.place.deleted) ||
      !Take(head, letter_fields::kDocumentVersion, letter.version) ||
      !Take(head, letter_fields::kNullIsJson, letter.null_is_json)) {
    return std::optional<Letter>();
  }
  if (letter.group.since_ms < 0 || letter.group.since_ms > kLatestMs)
    return std::optional<Letter>();
  letter.place.identity = IdentityOf(letter);
  if (!parts->document.empty()) {
    letter.body = parts->document;
    // A torn letter with another appended to its line passes the checks so far.
    if (!CheckJsonObject(letter.body)) return std::optional<Letter>();
    return std::optional(std::move(letter));
  }
  if (!head.contains(letter_fields::kDocumentBase64)) return std::optional<Letter>();
  letter.body = TextIn(head, letter_fields::kDocumentBase64);
  letter.defect = "its document is not a JSON object: " + TextIn(head, letter_fields::kError);
  return std::optional(std::move(letter));
}

// Reads the letters of one collection; a position is the number of lines read.
class LetterReader final : public Reader {
 public:
  // `letters` are those of the collection, by line.
  LetterReader(std::string path, std::map<size_t, uint64_t> letters, size_t position)
      : path_(std::move(path)), file_(path_), letters_(std::move(letters)) {
    next_ = letters_.upper_bound(position);
  }

  Result<std::optional<Document>> Next() override {
    if (next_ == letters_.end()) return std::nullopt;
    std::string line;
    while (number_ < next_->first && std::getline(file_, line)) ++number_;
    std::optional<Letter> letter;
    if (number_ == next_->first) {
      MUSTER_ASSIGN(letter, Parse(line, path_ + ":" + std::to_string(number_)));
    }
    if (!letter || letter->place.identity != next_->second) {
      return Error{Code::kConflict, path_ + " was changed while it was read",
                   "redrive it again when it is left alone"};
    }
    letter_ = *std::move(letter);
    ++next_;
    position_ = std::to_string(number_);
    return Document{.id = letter_.id,
                    .routing = letter_.routing,
                    .body = letter_.body,
                    .position = position_,
                    .defect = letter_.defect,
                    .deleted = letter_.place.deleted,
                    .version = letter_.version,
                    .null_is_json = letter_.null_is_json,
                    .part = letter_.place.part};
  }

 private:
  const std::string path_;
  std::ifstream file_;
  const std::map<size_t, uint64_t> letters_;
  std::map<size_t, uint64_t>::const_iterator next_;
  size_t number_ = 0;
  Letter letter_;
  std::string position_;
};

class LetterSource final : public Source {
 public:
  LetterSource(std::string path, const std::vector<LetterPlace>& letters) : path_(std::move(path)) {
    for (const LetterPlace& letter : letters) {
      letters_[letter.collection][letter.line] = letter.identity;
      has_deletes_ |= letter.deleted;
    }
  }

  Result<std::vector<Collection>> Collections() override {
    std::vector<Collection> collections;
    for (const auto& [name, letters] : letters_) collections.push_back({.name = name});
    return collections;
  }
  bool HasDeletes() const override { return has_deletes_; }
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    const auto letters = static_cast<int64_t>(letters_.at(collection).size());
    return std::vector<Partition>{{.collection = collection, .documents = letters}};
  }
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token /*stop*/) override {
    const auto line = position.empty() ? size_t{0} : ParseNumber<size_t>(position);
    if (!line) return Error{Code::kCorrupt, "dead letters have no position '" + position + "'"};
    return std::make_unique<LetterReader>(path_, letters_.at(partition.collection), *line);
  }
  std::optional<double> FractionBefore(const Partition& /*partition*/,
                                       const std::string& /*position*/) override {
    return std::nullopt;
  }

 private:
  const std::string path_;
  std::map<std::string, std::map<size_t, uint64_t>> letters_;  // by collection and line
  bool has_deletes_ = false;
};

}  // namespace

std::optional<LetterLine> LetterLine::Of(std::string_view line) {
  const size_t begin = SkipJsonSpace(line, 0);
  if (begin == line.size() || line[begin] != '{') return std::nullopt;
  std::string_view document;
  JsonMembers members(line.substr(begin));
  while (const auto member = members.Next()) {
    if (JsonKeyIs(member->key, letter_fields::kDocument)) document = member->value;
  }
  // The document is not parsed: it may be large, and its numbers must stay as written.
  std::string rest(line);
  if (!document.empty()) {
    rest.replace(static_cast<size_t>(document.data() - line.data()), document.size(), "0");
  }
  LetterLine parts{.head = Json::parse(rest, nullptr, false), .document = document};
  if (!parts.head.is_object()) return std::nullopt;
  return parts;
}

std::string BadLines::ToString() const {
  std::string text =
      std::to_string(count) + (count == 1 ? " line is not a dead letter and was skipped"
                                          : " lines are not dead letters and were skipped");
  for (size_t i = 0; i < first.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + std::to_string(first[i]);
  }
  return count > static_cast<int64_t>(first.size()) ? text + ", …" : text;
}

Result<DeadLetterLog> DeadLetterLog::Open(const std::string& path) {
  DeadLetterLog log(path);
  std::ifstream file(path);
  if (!file) return Error{Code::kInvalid, path + " cannot be read"};
  std::map<uint64_t, std::pair<LetterGroup, LetterPlace>> last;  // by identity
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    MUSTER_ASSIGN(auto letter, Parse(line, path + ":" + std::to_string(number)));
    if (letter) {
      letter->place.line = number;
      const auto found = last.find(letter->place.identity);
      const bool is_former =
          found != last.end() && letter->group.since_ms < found->second.first.since_ms;
      if (!is_former) {
        last[letter->place.identity] = {std::move(letter->group), std::move(letter->place)};
      }
      continue;
    }
    BadLines& bad = log.bad_lines_;
    if (++bad.count <= kMaxNamed) bad.first.push_back(number);
  }
  if (last.empty() && log.bad_lines_.count > 0) {
    return Error{Code::kInvalid,
                 path + ":" + std::to_string(log.bad_lines_.first[0]) +
                     " is not a dead letter, and neither is any other line",
                 "give a file that Muster wrote"};
  }
  for (auto& [identity, letter] : last) {
    log.letters_[std::move(letter.first)].push_back(std::move(letter.second));
  }
  for (auto& [group, letters] : log.letters_) {
    std::sort(letters.begin(), letters.end(),
              [](const LetterPlace& a, const LetterPlace& b) { return a.line < b.line; });
  }
  return log;
}

std::unique_ptr<Source> DeadLetterLog::Read(const std::vector<LetterPlace>& letters) const {
  return std::make_unique<LetterSource>(path_, letters);
}

}  // namespace muster::pipeline
