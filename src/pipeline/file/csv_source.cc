#include "pipeline/file/csv_source.h"

#include <algorithm>

#include "core/json.h"
#include "core/utf8.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/file/file_source.h"
#include "pipeline/file/record_reader.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/json/json_check.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

// Smaller parts are not worth splitting.
constexpr uint64_t kLeastSplitBytes = uint64_t{128} << 10;

struct CsvOptions {
  char delimiter = ',';
  std::vector<std::string> columns;  // empty: taken from the header
  std::string id;                    // empty: none
  std::string routing;
  bool trusts_quotes = false;
};

// The columns of one file and their roles.
struct CsvShape {
  std::vector<std::string> columns;
  std::vector<std::string> keys;  // `{"a":`, `,"b":`
  std::optional<size_t> id;
  std::optional<size_t> routing;
  bool has_header = false;
};

CsvRecords RecordsOf(const CsvShape& shape, const CsvOptions& options) {
  return {.delimiter = options.delimiter,
          .columns = shape.columns.size(),
          .has_header = shape.has_header,
          .trusts_quotes = options.trusts_quotes};
}

// Skipping it could lose any number of rows.
Error RunawayQuote(const std::string& place) {
  return {Code::kCorrupt,
          place +
              ": a quote that is not closed within max_document_bytes; the lines after it are "
              "lost in it",
          "correct the file, or allow longer records with max_document_bytes=BYTES"};
}

Status CheckColumns(const std::vector<std::string>& columns, const std::string& origin) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) {
      return Error{Code::kInvalid, origin + ": column " + std::to_string(i + 1) + " has no name",
                   "list the columns with columns=a,b,c if the file has no header"};
    }
    if (std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), columns[i]) !=
        columns.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Error{Code::kInvalid, origin + ": column '" + columns[i] + "' occurs twice"};
    }
  }
  return {};
}

bool HasBareReturn(std::string_view text) {
  for (size_t at = text.find('\r'); at != text.npos; at = text.find('\r', at + 1)) {
    if (!text.substr(at).starts_with("\r\n")) return true;
  }
  return false;
}

Result<std::optional<size_t>> ColumnOf(const std::string& name, const CsvShape& shape,
                                       const std::string& path) {
  if (name.empty()) return std::nullopt;
  const auto found = std::find(shape.columns.begin(), shape.columns.end(), name);
  if (found == shape.columns.end()) {
    return Error{Code::kInvalid, path + " has no column '" + name + "'"};
  }
  return static_cast<size_t>(found - shape.columns.begin());
}

class CsvReader final : public Reader {
 public:
  CsvReader(const FileEntry& file, const FileRange& range, std::unique_ptr<ByteStream> stream,
            size_t max_bytes, CsvShape shape, const CsvOptions& options)
      : file_(file),
        end_(range.end),
        max_bytes_(max_bytes),
        bounds_(RecordsOf(shape, options)),
        records_(std::move(stream), range.begin, max_bytes, bounds_),
        shape_(std::move(shape)),
        parser_(options.delimiter),
        counts_lines_(range.begin == 0) {}

  Result<std::optional<Document>> Next() override {
    for (;;) {
      if (records_.offset() >= end_) return std::nullopt;
      MUSTER_ASSIGN(const auto record, records_.Next());
      if (!record) return std::nullopt;
      const uint64_t line = line_;
      if (record->runaway) return RunawayQuote(PlaceOf(*record, line));
      line_ +=
          1 + static_cast<uint64_t>(std::count(record->text.begin(), record->text.end(), '\n'));
      if (record->offset == 0 && shape_.has_header) continue;
      // A blank line is a record only if records have a single field.
      if (record->text.empty() && shape_.columns.size() > 1) continue;
      return DocumentOf(*record, line);
    }
  }

  // Record boundaries are only known by reading forward from a known one.
  Result<std::optional<std::string>> Split() override {
    const uint64_t at = records_.offset();
    const uint64_t end = std::min(end_, file_.size);
    if (file_.compression != Compression::kNone || end < at + kLeastSplitBytes) return std::nullopt;
    const uint64_t middle = at + (end - at) / 2;
    MUSTER_ASSIGN(auto stream, OpenByteStream(file_.path, file_.compression, at));
    RecordReader ahead(std::move(stream), at, max_bytes_, bounds_);
    while (ahead.offset() < middle) {
      MUSTER_ASSIGN(const auto record, ahead.Next());
      if (!record) break;
    }
    if (ahead.offset() >= end) return std::nullopt;
    end_ = ahead.offset();
    return FilePosition(end_);
  }

 private:
  std::string PlaceOf(const RecordReader::Record& record, uint64_t line) const {
    return FilePlace(file_.path, counts_lines_ ? line + 1 : 0, record.offset);
  }

  Document DocumentOf(const RecordReader::Record& record, uint64_t line) {
    position_ = FilePosition(records_.offset());
    Document document{
        .id = {}, .routing = {}, .body = record.text, .position = position_, .defect = {}};
    const std::string reason = Convert(record);
    if (!reason.empty()) {
      defect_ = PlaceOf(record, line) + ": " + reason;
      document.defect = defect_;
      return document;
    }
    document.body = body_;
    if (shape_.id) document.id = parser_.fields()[*shape_.id].text;
    if (shape_.routing) document.routing = parser_.fields()[*shape_.routing].text;
    return document;
  }

  // Builds the record's object; returns why it cannot, or an empty string.
  std::string Convert(const RecordReader::Record& record) {
    if (record.too_long) return "the record is longer than max_document_bytes";
    if (record.open_quote) return "a quote that is not closed";
    if (!IsUtf8(record.text)) return CheckUtf8(record.text);
    if (const Status parsed = parser_.Parse(record.text); !parsed) return parsed.error().message;
    const std::vector<CsvField>& fields = parser_.fields();
    if (fields.size() != shape_.columns.size()) {
      return std::to_string(fields.size()) + " fields instead of " +
             std::to_string(shape_.columns.size());
    }
    if (shape_.id && fields[*shape_.id].text.empty()) {
      return "no id in the column '" + shape_.columns[*shape_.id] + "'";
    }
    body_.clear();
    for (size_t i = 0; i < fields.size(); ++i) {
      body_ += shape_.keys[i];
      if (fields[i].is_null()) {
        body_ += "null";
      } else {
        AppendUtf8JsonString(body_, fields[i].text);
      }
    }
    body_ += '}';
    return {};
  }

  static std::string CheckUtf8(std::string_view text) {
    return "invalid UTF-8 at byte " + std::to_string(ValidUtf8Prefix(text) + 1) + " of the record";
  }

  const FileEntry file_;
  uint64_t end_;
  const size_t max_bytes_;
  const CsvRecords bounds_;
  RecordReader records_;
  const CsvShape shape_;
  CsvParser parser_;
  const bool counts_lines_;
  uint64_t line_ = 0;
  std::string position_;
  std::string body_;
  std::string defect_;
};

class CsvSource final : public FileSource {
 public:
  CsvSource(FileSourceOptions file_options, CsvOptions options)
      : FileSource(std::move(file_options)), options_(std::move(options)) {}

 protected:
  // The columns of all files, all as text: typing them is up to transforms and sinks.
  Result<std::string> Metadata(const FileCollection& collection) override {
    std::vector<std::string> all;
    for (const FileEntry& file : collection.files) {
      MUSTER_ASSIGN(const CsvShape shape, ShapeOf(file));
      for (const std::string& name : shape.columns) {
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
      }
    }
    Json columns = Json::array();
    for (const std::string& name : all) {
      columns.push_back({{"name", name}, {"type", "text"}, {"nullable", true}});
    }
    return ToJsonText(Json{{"columns", columns}, {"key", Json::array()}});
  }

  // Only a scan from the start shows which line ends are quoted.
  Result<std::vector<uint64_t>> Cuts(const FileEntry& file, uint64_t partition_bytes) override {
    MUSTER_ASSIGN(const CsvShape shape, ShapeOf(file));
    MUSTER_ASSIGN(auto stream, OpenByteStream(file.path, file.compression, 0));
    RecordReader records(std::move(stream), 0, options().max_document_bytes,
                         RecordsOf(shape, options_));
    std::vector<uint64_t> cuts = {0};
    for (;;) {
      MUSTER_ASSIGN(const auto record, records.Next());
      if (!record) return cuts;
      if (record->runaway) return RunawayQuote(FilePlace(file.path, 0, record->offset));
      if (record->offset >= cuts.back() + partition_bytes) cuts.push_back(record->offset);
    }
  }

  Result<std::unique_ptr<Reader>> ReadRange(const FileEntry& file,
                                            const FileRange& range) override {
    MUSTER_ASSIGN(CsvShape shape, ShapeOf(file));
    MUSTER_ASSIGN(auto stream, OpenByteStream(file.path, file.compression, range.begin));
    return std::make_unique<CsvReader>(file, range, std::move(stream), options().max_document_bytes,
                                       std::move(shape), options_);
  }

 private:
  Result<CsvShape> ShapeOf(const FileEntry& file) {
    CsvShape shape;
    shape.columns = options_.columns;
    if (shape.columns.empty()) {
      shape.has_header = true;
      MUSTER_ASSIGN(shape.columns, HeaderOf(file));
    }
    for (const std::string& name : shape.columns) {
      std::string key = shape.keys.empty() ? "{" : ",";
      AppendJsonString(key, name);
      shape.keys.push_back(key + ":");
    }
    MUSTER_ASSIGN(shape.id, ColumnOf(options_.id, shape, file.path));
    MUSTER_ASSIGN(shape.routing, ColumnOf(options_.routing, shape, file.path));
    return shape;
  }

  Result<std::vector<std::string>> HeaderOf(const FileEntry& file) {
    MUSTER_ASSIGN(auto stream, OpenByteStream(file.path, file.compression, 0));
    RecordReader records(std::move(stream), 0, options().max_document_bytes,
                         CsvRecords{.delimiter = options_.delimiter});
    MUSTER_ASSIGN(const auto header, records.Next());
    if (!header) {
      return Error{Code::kInvalid, file.path + " is empty: it has no header",
                   "list the columns with columns=a,b,c if that is intended"};
    }
    const std::string_view text = WithoutBom(header->text);
    if (!IsUtf8(text)) return Error{Code::kInvalid, file.path + ":1: invalid UTF-8 in the header"};
    // Otherwise the whole file would be the header, with no records after it.
    if (HasBareReturn(text)) {
      return Error{Code::kInvalid, file.path + ":1: a carriage return in the header",
                   "end lines with a line feed, or with both: tr '\\r' '\\n'"};
    }
    CsvParser parser(options_.delimiter);
    if (const Status parsed = parser.Parse(text); !parsed) {
      return parsed.error().Within(file.path + ":1: the header");
    }
    std::vector<std::string> columns;
    for (const CsvField& field : parser.fields()) columns.emplace_back(field.text);
    MUSTER_TRY(CheckColumns(columns, file.path + ":1"));
    return columns;
  }

  const CsvOptions options_;
};

}  // namespace

Result<char> CsvDelimiter(const Url& url) {
  const std::string text = url.Param("delimiter").value_or(",");
  if (text == "tab") return '\t';
  if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r") {
    return Error{Code::kInvalid, "csv: the delimiter must be one character", "or the word tab"};
  }
  return text[0];
}

Result<std::vector<std::string>> CsvColumns(const Url& url) {
  std::vector<std::string> columns;
  const auto text = url.Param("columns");
  if (!text) return columns;
  CsvParser parser(',');
  MUSTER_TRY(parser.Parse(*text));
  for (const CsvField& field : parser.fields()) columns.emplace_back(field.text);
  MUSTER_TRY(CheckColumns(columns, "csv: parameter 'columns'"));
  return columns;
}

Result<std::unique_ptr<Source>> OpenCsvSource(const Url& url, Env&) {
  MUSTER_TRY(CheckParams(url, {"columns", "delimiter", "id", "routing", "quotes", "partition_bytes",
                               "max_document_bytes"}));
  MUSTER_ASSIGN(auto file_options, FileSourceOptions::From(url, {".csv", ".tsv"}));
  CsvOptions options;
  MUSTER_ASSIGN(options.delimiter, CsvDelimiter(url));
  MUSTER_ASSIGN(options.columns, CsvColumns(url));
  options.id = url.Param("id").value_or("");
  options.routing = url.Param("routing").value_or("");
  const std::string quotes = url.Param("quotes").value_or("");
  if (!quotes.empty() && quotes != "trust")
    return Error{Code::kInvalid, "csv: quotes must be 'trust' or left out"};
  options.trusts_quotes = quotes == "trust";
  return std::make_unique<CsvSource>(std::move(file_options), std::move(options));
}

}  // namespace muster::pipeline
