#include "replica/sql_template.h"

#include <simdjson.h>

#include <algorithm>
#include <map>

#include "core/json.h"
#include "core/json_grammar.h"
#include "core/utf8.h"
#include "sql/postgres.h"

namespace muster::replica {
namespace {

constexpr size_t kQuotedBytes = 60;  // of a statement, in a message

constexpr std::string_view kParts[] = {"position", "stream", "version", "id",
                                       "type",     "time",   "payload", "metadata"};

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The end of the quoted text or comment at `at`; `at` itself if there is none.
size_t SkipQuoted(std::string_view text, size_t at) {
  const auto until = [&](std::string_view end, size_t from) {
    const size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  if (text[at] == '\'') return until("'", at + 1);
  if (text[at] == '"') return until("\"", at + 1);
  if (text.substr(at, 2) == "--") return until("\n", at);
  if (text.substr(at, 2) == "/*") return until("*/", at);
  if (text[at] == '$') {  // $tag$ … $tag$
    size_t end = at + 1;
    while (end < text.size() && IsWord(text[end])) ++end;
    if (end < text.size() && text[end] == '$') {
      const std::string_view tag = text.substr(at, end - at + 1);
      return until(tag, end + 1);
    }
  }
  return at;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// The transaction is the caller's, who commits it with the checkpoint.
bool ControlsTransaction(const std::string& word) {
  static constexpr std::string_view kWords[] = {"BEGIN",    "START", "COMMIT",    "END",
                                                "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Requires a single statement that does not control the transaction. The body of a trigger or
// function, from BEGIN on, may contain semicolons.
Status CheckStatement(std::string_view text) {
  std::string first;
  bool ended = false;
  bool body = false;
  for (size_t at = 0; at < text.size();) {
    const size_t quoted = SkipQuoted(text, at);
    const bool comment = quoted > at && (text[at] == '-' || text[at] == '/');
    if (comment || std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      at = std::max(quoted, at + 1);
      continue;
    }
    if (text[at] == ';') {
      ended = !first.empty() && !body;
      ++at;
      continue;
    }
    if (ended) {
      return Error{Code::kInvalid,
                   "a second statement in one text: " + Shortened(text.substr(at), kQuotedBytes),
                   "write a list with one statement each"};
    }
    size_t end = std::max(quoted, at + 1);
    while (quoted == at && IsWord(text[at]) && end < text.size() && IsWord(text[end])) ++end;
    const std::string word = Upper(text.substr(at, end - at));
    if (first.empty()) first = word;
    body = body || word == "BEGIN";
    at = end;
  }
  if (first.empty()) {
    return Error{Code::kInvalid, "a statement is empty",
                 "write [] for a type of event that changes nothing"};
  }
  if (!ControlsTransaction(first)) return {};
  return Error{Code::kInvalid, first + " is not allowed: events are handled in one transaction",
               "leave it out: the transaction is committed together with the checkpoint"};
}

std::string TimeText(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(
      text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d.%03d+00", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

std::string Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return std::string(text);
}

// JSON text accessed by path. Numbers keep their digits.
class JsonText {
 public:
  explicit JsonText(const std::string& text) : padded_(text) {
    // One validates everything, the other yields raw tokens.
    thread_local simdjson::dom::parser checker;
    error_ = checker.parse(padded_).error();
    // Numbers beyond 64 bits are still JSON.
    if (error_ == simdjson::NUMBER_ERROR && IsJson(text)) error_ = simdjson::SUCCESS;
    if (error_ == simdjson::SUCCESS) error_ = parser_.iterate(padded_).get(document_);
  }

  Result<SqlValue> At(const std::vector<std::string>& path) {
    if (error_ != simdjson::SUCCESS) {
      return Error{Code::kInvalid, std::string("not JSON: ") + simdjson::error_message(error_)};
    }
    document_.rewind();
    simdjson::ondemand::value value;
    // A scalar document has no members.
    if (simdjson::ondemand::object top;
        document_.get_object().get(top) != simdjson::SUCCESS ||
        top.find_field_unordered(path[0]).get(value) != simdjson::SUCCESS) {
      return SqlValue{};
    }
    for (size_t i = 1; i < path.size(); ++i) {
      simdjson::ondemand::object inner;
      if (value.get_object().get(inner) != simdjson::SUCCESS) return SqlValue{};
      simdjson::ondemand::value next;
      if (inner.find_field_unordered(path[i]).get(next) != simdjson::SUCCESS) return SqlValue{};
      value = next;
    }
    return TextOf(value);
  }

 private:
  static Result<SqlValue> TextOf(simdjson::ondemand::value value) {
    simdjson::ondemand::json_type type;
    std::string_view text;
    if (value.type().get(type) != simdjson::SUCCESS) return Error{Code::kInvalid, "not JSON"};
    switch (type) {
      case simdjson::ondemand::json_type::null:
        return SqlValue{};
      case simdjson::ondemand::json_type::string:
        if (value.get_string().get(text) != simdjson::SUCCESS) break;
        if (text.find('\0') != std::string_view::npos) {
          return Error{Code::kInvalid, "a string holds a NUL, which SQL cannot"};
        }
        return SqlValue{std::string(text)};
      case simdjson::ondemand::json_type::object:
      case simdjson::ondemand::json_type::array:
        if (simdjson::to_json_string(value).get(text) != simdjson::SUCCESS) break;
        return SqlValue{std::string(text)};
      default:
        return SqlValue{Trimmed(value.raw_json_token())};
    }
    return Error{Code::kInvalid, "not JSON"};
  }

  simdjson::padded_string padded_;
  simdjson::ondemand::parser parser_;
  simdjson::ondemand::document document_;
  simdjson::error_code error_ = simdjson::SUCCESS;
};

}  // namespace

std::string VersionedTable(const std::string& table, int version) {
  return sql::PgIdentifier(table + "_v" + std::to_string(version));
}

// "payload.customer.id"
Result<SqlTemplate::Place> SqlTemplate::PlaceOf(const std::string& name) {
  Place place;
  for (size_t from = 0; from <= name.size();) {
    const size_t dot = std::min(name.find('.', from), name.size());
    if (from == 0) {
      place.part = name.substr(0, dot);
    } else {
      place.path.push_back(name.substr(from, dot - from));
    }
    from = dot + 1;
  }
  const bool known =
      std::find(std::begin(kParts), std::end(kParts), place.part) != std::end(kParts);
  const bool deep = place.part == "payload" || place.part == "metadata";
  if (known && (deep || place.path.empty())) return place;
  return Error{Code::kInvalid, ":" + name + " is not a part of an event",
               "use :position, :stream, :version, :id, :type, :time, :payload, "
               ":payload.FIELD, :metadata or :metadata.FIELD"};
}

Result<SqlTemplate> SqlTemplate::Parse(std::string_view text,
                                       const std::vector<std::string>& tables) {
  MUSTER_TRY(CheckStatement(text));
  SqlTemplate parsed;
  std::map<std::string, size_t> numbers;
  std::string piece;
  for (size_t at = 0; at < text.size();) {
    if (const size_t end = SkipQuoted(text, at); end > at) {
      piece += text.substr(at, end - at);
      at = end;
      continue;
    }
    if (text[at] == ':' && at + 1 < text.size() && text[at + 1] == ':') {
      piece += "::";
      at += 2;
      continue;
    }
    if (text[at] == ':' && at + 1 < text.size() && IsWord(text[at + 1])) {
      size_t end = at + 1;
      while (end < text.size() &&
             (IsWord(text[end]) ||
              (text[end] == '.' && end + 1 < text.size() && IsWord(text[end + 1])))) {
        ++end;
      }
      const std::string name(text.substr(at + 1, end - at - 1));
      MUSTER_ASSIGN(Place place, PlaceOf(name));
      const auto [found, fresh] = numbers.try_emplace(name, parsed.places_.size() + 1);
      if (fresh) parsed.places_.push_back(std::move(place));
      piece += "$" + std::to_string(found->second);
      at = end;
      continue;
    }
    if (text[at] == '{') {
      const size_t close = text.find('}', at);
      if (close == std::string_view::npos) {
        return Error{Code::kInvalid,
                     "'{' is not closed: " + Shortened(text.substr(at), kQuotedBytes),
                     "write {NAME} for a table of the projection"};
      }
      const std::string name(text.substr(at + 1, close - at - 1));
      if (std::find(tables.begin(), tables.end(), name) == tables.end()) {
        return Error{Code::kInvalid, "{" + name + "} is not a table of this projection",
                     "list it under 'tables'"};
      }
      parsed.pieces_.push_back(std::move(piece));
      parsed.tables_.push_back(name);
      piece.clear();
      at = close + 1;
      continue;
    }
    piece += text[at++];
  }
  parsed.pieces_.push_back(std::move(piece));
  if (parsed.places_.size() > sql::PgParams::kMax) {
    return Error{Code::kInvalid, "a statement has more than " +
                                     std::to_string(sql::PgParams::kMax) + " placeholders"};
  }
  return parsed;
}

std::string SqlTemplate::Sql(int version) const {
  std::string sql = pieces_.front();
  for (size_t i = 0; i < tables_.size(); ++i) {
    sql += VersionedTable(tables_[i], version) + pieces_[i + 1];
  }
  return sql;
}

Result<std::vector<SqlValue>> SqlTemplate::Values(const events::Event& event) const {
  std::vector<SqlValue> values;
  std::optional<JsonText> payload, metadata;
  for (const Place& place : places_) {
    if (!place.path.empty()) {
      const bool of_payload = place.part == "payload";
      std::optional<JsonText>& json = of_payload ? payload : metadata;
      if (!json) json.emplace(of_payload ? event.payload : event.metadata);
      auto value = json->At(place.path);
      if (!value) return value.error().Within("the " + place.part + " is");
      values.push_back(*std::move(value));
    } else if (place.part == "position") {
      values.emplace_back(std::to_string(event.position));
    } else if (place.part == "stream") {
      values.emplace_back(event.stream);
    } else if (place.part == "version") {
      values.emplace_back(std::to_string(event.version));
    } else if (place.part == "id") {
      values.emplace_back(event.id);
    } else if (place.part == "type") {
      values.emplace_back(event.type);
    } else if (place.part == "time") {
      values.emplace_back(TimeText(event.time));
    } else {
      values.emplace_back(place.part == "payload" ? event.payload : event.metadata);
    }
  }
  return values;
}

}  // namespace muster::replica
