#include "pipeline/dead_letter_source.h"

#include <fstream>
#include <map>
#include <set>

#include "base/json.h"

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
  std::string defect;
  bool deleted = false;
  int64_t version = 0;
};

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<Letter> Parse(const std::string& line, const std::string& path, size_t number) {
  const std::string place = path + ":" + std::to_string(number);
  const size_t document = line.find(kDocument);
  const bool whole = document != std::string::npos && line.ends_with('}');
  auto head = ParseJson(whole ? line.substr(0, document) + "}" : line, place);
  if (!head || !head->is_object() || !head->contains("collection")) {
    return Error{Code::kInvalid, place + " is no dead letter", "give a file that Muster wrote"};
  }
  Letter letter{.collection = Text(*head, "collection"),
                .id = Text(*head, "id"),
                .routing = Text(*head, "routing"),
                .where = Text(*head, "position") + "\n" + Text(*head, "id"),
                .body = {},
                .defect = {},
                .deleted = head->value("deleted", false),
                .version = head->value("version", int64_t{0})};
  if (whole) {
    const size_t start = document + kDocument.size();
    letter.body = line.substr(start, line.size() - 1 - start);
  } else {
    letter.body = Text(*head, "document_base64");
    letter.defect = "its document was no JSON object: " + Text(*head, "error");
  }
  return letter;
}

// Gives the letters of one collection; a position is the number of lines that were read.
class LetterReader final : public Reader {
 public:
  LetterReader(const std::string& path, std::string collection)
      : path_(path), collection_(std::move(collection)), file_(path) {}

  Status SkipTo(size_t lines) {
    while (number_ < lines) {
      MUSTER_ASSIGN(const bool more, Read());
      if (!more) break;
    }
    return {};
  }

  Result<std::optional<Document>> Next() override {
    for (;;) {
      MUSTER_ASSIGN(const bool more, Read());
      if (!more) return std::nullopt;
      if (!wanted_) continue;
      position_ = std::to_string(number_);
      return Document{.id = letter_.id,
                      .routing = letter_.routing,
                      .body = letter_.body,
                      .position = position_,
                      .defect = letter_.defect,
                      .deleted = letter_.deleted,
                      .version = letter_.version};
    }
  }

 private:
  Result<bool> Read() {
    std::string line;
    if (!std::getline(file_, line)) return false;
    ++number_;
    // Half a letter that a crash left has been followed by an empty line.
    wanted_ = false;
    if (line.empty()) return true;
    MUSTER_ASSIGN(letter_, Parse(line, path_, number_));
    wanted_ = letter_.collection == collection_ && seen_.insert(letter_.where).second;
    return true;
  }

  const std::string path_;
  const std::string collection_;
  std::ifstream file_;
  size_t number_ = 0;
  bool wanted_ = false;
  Letter letter_;
  std::string position_;
  std::set<std::string> seen_;
};

class DeadLetterSource final : public Source {
 public:
  explicit DeadLetterSource(std::string path) : path_(std::move(path)) {}

  Status Open() {
    std::ifstream file(path_);
    if (!file) return Error{Code::kInvalid, path_ + " cannot be read"};
    size_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (line.empty()) continue;
      MUSTER_ASSIGN(const Letter letter, Parse(line, path_, number));
      ++letters_[letter.collection];
      has_deletes_ |= letter.deleted;
    }
    return {};
  }

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
    if (!position.empty()) MUSTER_TRY(reader->SkipTo(std::stoul(position)));
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
};

}  // namespace

Result<std::unique_ptr<Source>> OpenDeadLetterSource(const std::string& path) {
  auto source = std::make_unique<DeadLetterSource>(path);
  MUSTER_TRY(source->Open());
  return source;
}

}  // namespace muster
