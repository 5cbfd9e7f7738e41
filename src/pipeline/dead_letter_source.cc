#include "pipeline/dead_letter_source.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include "base/json.h"
#include "base/number.h"
#include "base/sha256.h"
#include "pipeline/json_text.h"

namespace muster {
namespace {

// The last field of a letter. Inside a string of JSON its quotes would be escaped.
constexpr std::string_view kDocument = ",\"document\":";

struct Letter {
  LetterGroup group;
  std::string collection;
  std::string id;
  std::string routing;
  std::string where;  // tells it from others of the file
  std::string body;
  std::string defect;  // why the body is none
  bool deleted = false;
  int64_t version = 0;
};

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// Takes a field into `value`, if it is there. False: it is of another type.
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

// None: the line is no letter, or not a whole one.
std::optional<Letter> Parse(const std::string& line) {
  const size_t document = line.find(kDocument);
  const bool has_document = document != std::string::npos && line.ends_with('}');
  const Json head =
      Json::parse(has_document ? line.substr(0, document) + "}" : line, nullptr, false);
  if (!head.is_object() || Text(head, "collection").empty()) return std::nullopt;
  Letter letter{.group = {.run = Text(head, "run"), .target = Text(head, "target")},
                .collection = Text(head, "collection"),
                .id = Text(head, "id"),
                .routing = Text(head, "routing"),
                .where = {},
                .body = {},
                .defect = {}};
  letter.where = letter.group.run + "\n" + letter.collection + "\n" + Text(head, "position") +
                 "\n" + letter.id;
  if (!Take(head, "transformed", letter.group.transformed) ||
      !Take(head, "deleted", letter.deleted) || !Take(head, "version", letter.version)) {
    return std::nullopt;
  }
  if (has_document) {
    const size_t start = document + kDocument.size();
    letter.body = line.substr(start, line.size() - 1 - start);
    // A letter that was torn, and another that was written on to its line, look whole so far.
    if (!CheckJsonObject(letter.body)) return std::nullopt;
    return letter;
  }
  if (!head.contains("document_base64")) return std::nullopt;
  letter.body = Text(head, "document_base64");
  letter.defect = "its document was no JSON object: " + Text(head, "error");
  return letter;
}

// Which lines of a file are read.
struct Selection {
  std::string path;
  LetterGroup group;
  size_t after = 0;
  size_t until = 0;
};

// Gives the letters of one collection; a position is the number of lines that were read.
class LetterReader final : public Reader {
 public:
  LetterReader(const Selection& selection, std::string collection, size_t position)
      : selection_(selection), collection_(std::move(collection)), file_(selection.path) {
    // What lies before counts too: the same letter is not read again.
    while (number_ < std::max(position, selection_.after) && Read()) continue;
  }

  Result<std::optional<Document>> Next() override {
    do {
      if (!Read()) return std::nullopt;
    } while (!wanted_);
    position_ = std::to_string(number_);
    return Document{.id = letter_.id,
                    .routing = letter_.routing,
                    .body = letter_.body,
                    .position = position_,
                    .defect = letter_.defect,
                    .deleted = letter_.deleted,
                    .version = letter_.version};
  }

 private:
  bool Read() {
    std::string line;
    if (number_ == selection_.until || !std::getline(file_, line)) return false;
    ++number_;
    auto letter = Parse(line);
    wanted_ = letter && seen_.insert(letter->where).second && letter->group == selection_.group &&
              letter->collection == collection_;
    if (wanted_) letter_ = *std::move(letter);
    return true;
  }

  const Selection selection_;
  const std::string collection_;
  std::ifstream file_;
  size_t number_ = 0;
  bool wanted_ = false;
  Letter letter_;
  std::string position_;
  std::set<std::string> seen_;
};

class LetterSource final : public Source {
 public:
  LetterSource(Selection selection, std::map<std::string, int64_t> letters, bool has_deletes)
      : selection_(std::move(selection)), letters_(std::move(letters)), has_deletes_(has_deletes) {}

  Result<std::vector<Collection>> Collections() override {
    std::vector<Collection> collections;
    for (const auto& [name, letters] : letters_) collections.push_back({.name = name});
    return collections;
  }
  bool HasDeletes() const override { return has_deletes_; }
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    return std::vector<Partition>{{.collection = collection, .documents = letters_.at(collection)}};
  }
  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token /*stop*/) override {
    if (position.empty()) {
      return std::make_unique<LetterReader>(selection_, partition.collection, 0);
    }
    const auto line = ParseNumber<size_t>(position);
    if (!line) return Error{Code::kCorrupt, "dead letters have no position '" + position + "'"};
    return std::make_unique<LetterReader>(selection_, partition.collection, *line);
  }
  std::optional<double> FractionBefore(const Partition& /*partition*/,
                                       const std::string& /*position*/) override {
    return std::nullopt;
  }

 private:
  const Selection selection_;
  const std::map<std::string, int64_t> letters_;  // by collection, repeated ones included
  const bool has_deletes_;
};

}  // namespace

void BadLines::Add(size_t number) {
  if (first.size() < kMaxNamed) first.push_back(number);
  ++count;
}

std::string BadLines::ToString() const {
  std::string text =
      std::to_string(count) + (count == 1 ? " line is no dead letter and was skipped"
                                          : " lines are no dead letters and were skipped");
  for (size_t i = 0; i < first.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + std::to_string(first[i]);
  }
  return count > static_cast<int64_t>(first.size()) ? text + ", …" : text;
}

Result<DeadLetterLog> DeadLetterLog::Open(const std::string& path) {
  DeadLetterLog log(path);
  std::ifstream file(path);
  if (!file) return Error{Code::kInvalid, path + " cannot be read"};
  for (std::string line; std::getline(file, line);) {
    if (++log.lines_ == 1) log.fingerprint_ = Sha256Hex(line);
    if (line.empty()) continue;
    const auto letter = Parse(line);
    if (letter) {
      log.letters_[letter->group].push_back({letter->collection, log.lines_, letter->deleted});
    } else {
      log.bad_lines_.Add(log.lines_);
    }
  }
  if (log.letters_.empty() && log.bad_lines_.count > 0) {
    return Error{Code::kInvalid,
                 path + ":" + std::to_string(log.bad_lines_.first[0]) +
                     " is no dead letter, and neither is any other line",
                 "give a file that Muster wrote"};
  }
  return log;
}

std::vector<LetterGroup> DeadLetterLog::groups() const {
  std::vector<LetterGroup> groups;
  for (const auto& [group, letters] : letters_) groups.push_back(group);
  return groups;
}

int64_t DeadLetterLog::LettersAfter(const LetterGroup& group, size_t lines) const {
  const auto& letters = letters_.at(group);
  return std::count_if(letters.begin(), letters.end(),
                       [&](const Place& letter) { return letter.line > lines; });
}

std::unique_ptr<Source> DeadLetterLog::Read(const LetterGroup& group, size_t lines) const {
  std::map<std::string, int64_t> letters;
  bool has_deletes = false;
  for (const Place& letter : letters_.at(group)) {
    if (letter.line <= lines) continue;
    ++letters[letter.collection];
    has_deletes |= letter.deleted;
  }
  return std::make_unique<LetterSource>(
      Selection{.path = path_, .group = group, .after = lines, .until = lines_}, std::move(letters),
      has_deletes);
}

}  // namespace muster
