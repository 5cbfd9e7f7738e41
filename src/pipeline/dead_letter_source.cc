#include "pipeline/dead_letter_source.h"

#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/json.h"
#include "pipeline/json_text.h"

namespace muster {
namespace {

// The last field of a letter. Inside a string of JSON its quotes would be escaped.
constexpr std::string_view kDocument = ",\"document\":";

struct Letter {
  std::string collection;
  std::string id;
  std::string routing;
  std::string where;  // tells it from others of the collection
  std::string body;
  std::string defect;  // why the body is none
  bool deleted = false;
  int64_t version = 0;
};

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// None: the line is no letter, or not a whole one.
std::optional<Letter> Parse(const std::string& line) {
  const size_t document = line.find(kDocument);
  const bool has_document = document != std::string::npos && line.ends_with('}');
  const Json head =
      Json::parse(has_document ? line.substr(0, document) + "}" : line, nullptr, false);
  if (!head.is_object() || Text(head, "collection").empty()) return std::nullopt;
  Letter letter{.collection = Text(head, "collection"),
                .id = Text(head, "id"),
                .routing = Text(head, "routing"),
                .where = Text(head, "position") + "\n" + Text(head, "id"),
                .body = {},
                .defect = {}};
  if (const auto deleted = head.find("deleted"); deleted != head.end()) {
    if (!deleted->is_boolean()) return std::nullopt;
    letter.deleted = deleted->get<bool>();
  }
  if (const auto version = head.find("version"); version != head.end()) {
    if (!version->is_number_integer()) return std::nullopt;
    letter.version = version->get<int64_t>();
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

// Gives the letters of one collection; a position is the number of lines that were read.
class LetterReader final : public Reader {
 public:
  LetterReader(const std::string& path, std::string collection)
      : collection_(std::move(collection)), file_(path) {}

  void SkipTo(size_t lines) {
    while (number_ < lines && Read()) continue;
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
    if (!std::getline(file_, line)) return false;
    ++number_;
    auto letter = Parse(line);
    wanted_ = letter && letter->collection == collection_ && seen_.insert(letter->where).second;
    if (wanted_) letter_ = *std::move(letter);
    return true;
  }

  const std::string collection_;
  std::ifstream file_;
  size_t number_ = 0;
  bool wanted_ = false;
  Letter letter_;
  std::string position_;
  std::set<std::string> seen_;
};

class LetterFileSource final : public DeadLetterSource {
 public:
  explicit LetterFileSource(std::string path) : path_(std::move(path)) {}

  Status Open() {
    std::ifstream file(path_);
    if (!file) return Error{Code::kInvalid, path_ + " cannot be read"};
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.empty()) continue;
      const auto letter = Parse(line);
      if (!letter) {
        bad_lines_.Add(number);
        continue;
      }
      ++letters_[letter->collection];
      has_deletes_ |= letter->deleted;
    }
    if (letters_.empty() && bad_lines_.count > 0) {
      return Error{Code::kInvalid,
                   path_ + ":" + std::to_string(bad_lines_.first[0]) +
                       " is no dead letter, and neither is any other line",
                   "give a file that Muster wrote"};
    }
    return {};
  }

  const BadLines& bad_lines() const override { return bad_lines_; }

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
    auto reader = std::make_unique<LetterReader>(path_, partition.collection);
    if (!position.empty()) reader->SkipTo(std::stoul(position));
    return reader;
  }
  std::optional<double> FractionBefore(const Partition& /*partition*/,
                                       const std::string& /*position*/) override {
    return std::nullopt;
  }

 private:
  const std::string path_;
  std::map<std::string, int64_t> letters_;  // by collection, repeated ones included
  bool has_deletes_ = false;
  BadLines bad_lines_;
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
  for (size_t i = 0; i < first.size(); ++i)
    text += (i == 0 ? ": " : ", ") + std::to_string(first[i]);
  return count > static_cast<int64_t>(first.size()) ? text + ", …" : text;
}

Result<std::unique_ptr<DeadLetterSource>> OpenDeadLetterSource(const std::string& path) {
  auto source = std::make_unique<LetterFileSource>(path);
  MUSTER_TRY(source->Open());
  return source;
}

}  // namespace muster
