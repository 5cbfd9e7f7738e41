#include "pipeline/file/csv_sink.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "core/json.h"
#include "core/json_scan.h"
#include "core/mutex.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/file/csv_source.h"
#include "pipeline/file/file_sink.h"
#include "pipeline/flow/scheme.h"

namespace muster::pipeline {
namespace {

using Columns = std::vector<std::string>;

constexpr char kColumnsFile[] = "/columns.json";

// All files of a collection share the same columns, stored where every worker finds them.
Result<Columns> LoadColumns(const std::string& state_folder) {
  std::error_code failed;
  Columns columns;
  if (!std::filesystem::exists(state_folder + kColumnsFile, failed)) return columns;
  MUSTER_ASSIGN(const Json json, ReadJsonFile(state_folder + kColumnsFile));
  for (const Json& name : json) columns.push_back(name.is_string() ? name.get<std::string>() : "");
  return columns;
}

Status StoreColumns(const std::string& state_folder, const Columns& columns) {
  return ReplaceFile(state_folder + kColumnsFile, ToJsonText(Json(columns)));
}

Result<Columns> ColumnsIn(const std::string& metadata) {
  Columns columns;
  MUSTER_ASSIGN(const Json json, ParseJson(metadata, "metadata of the collection"));
  if (const auto list = json.find("columns"); list != json.end() && list->is_array()) {
    for (const Json& column : *list) {
      if (column.contains("name")) columns.push_back(column["name"].get<std::string>());
    }
  }
  return columns;
}

// The fields of the documents in order of first appearance.
Columns FieldsOf(const Batch& batch) {
  Columns columns;
  for (const Document& document : batch.documents) {
    JsonMembers members(document.body.substr(SkipJsonSpace(document.body, 0)));
    while (const auto member = members.Next()) {
      const std::string name = UnescapeJson(member->key);
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
  return columns;
}

class CsvEncoder final : public FileEncoder {
 public:
  CsvEncoder(Columns columns, FileSinkState& state, char delimiter)
      : columns_(std::move(columns)), state_(state), delimiter_(delimiter) {}

  Result<std::string> Header(const Batch* first) override {
    MUSTER_TRY(Settle(first));
    std::string header;
    for (const std::string& name : columns_) {
      if (!header.empty()) header += delimiter_;
      AppendCsvField(header, name, delimiter_);
    }
    if (!header.empty()) header += '\n';
    return header;
  }

  Status Encode(const Document& document, std::string& bytes) override {
    values_.assign(columns_.size(), std::nullopt);
    size_t guess = 0;
    JsonMembers members(document.body.substr(SkipJsonSpace(document.body, 0)));
    while (const auto member = members.Next()) {
      MUSTER_ASSIGN(const size_t column, ColumnOf(member->key, guess));
      if (values_[column]) {
        return Error{Code::kInvalid, "the field '" + columns_[column] + "' occurs twice"};
      }
      values_[column] = member->value;
      guess = column + 1;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (i > 0) bytes += delimiter_;
      if (values_[i]) AppendValue(bytes, *values_[i]);
    }
    bytes += '\n';
    return {};
  }

 private:
  // Loads the columns, or derives them from the first documents and stores them for all workers.
  Status Settle(const Batch* first) {
    MUSTER_ASSIGN(Columns stored, LoadColumns(state_.folder()));
    if (stored.empty() && first != nullptr) {
      MUSTER_ASSIGN(const auto lock, state_.Acquire());
      MUSTER_ASSIGN(stored, LoadColumns(state_.folder()));
      if (stored.empty()) {
        stored = columns_.empty() ? FieldsOf(*first) : columns_;
        MUSTER_TRY(StoreColumns(state_.folder(), stored));
      }
    }
    if (!stored.empty()) columns_ = std::move(stored);
    return {};
  }

  // Fields usually come in column order: `guess` avoids the search.
  Result<size_t> ColumnOf(std::string_view key, size_t guess) const {
    if (guess < columns_.size() && JsonKeyIs(key, columns_[guess])) return guess;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (JsonKeyIs(key, columns_[i])) return i;
    }
    return Error{Code::kInvalid, "no column for the field '" + UnescapeJson(key) + "'",
                 "list all columns with columns=a,b,c, or drop the field with a transform"};
  }

  void AppendValue(std::string& bytes, std::string_view value) const {
    if (value == "null") return;
    const bool is_string = value.starts_with('"') && value.size() >= 2;
    if (!is_string) return AppendCsvField(bytes, value, delimiter_);
    const std::string_view raw = value.substr(1, value.size() - 2);
    if (raw.find('\\') == std::string_view::npos) return AppendCsvField(bytes, raw, delimiter_);
    AppendCsvField(bytes, UnescapeJson(raw), delimiter_);
  }

  Columns columns_;
  FileSinkState& state_;
  const char delimiter_;
  std::vector<std::optional<std::string_view>> values_;
};

class CsvFormat final : public FileFormat {
 public:
  CsvFormat(Columns columns, char delimiter)
      : fixed_columns_(std::move(columns)), delimiter_(delimiter) {}

  const std::vector<std::string_view>& Endings() const override {
    static const std::vector<std::string_view> kEndings = {".csv", ".tsv"};
    return kEndings;
  }

  Status Prepare(const Collection& collection, const std::string& state_folder) override {
    Columns columns = fixed_columns_;
    if (columns.empty()) {
      MUSTER_ASSIGN(columns, ColumnsIn(collection.metadata));
    }
    if (columns.empty()) return {};
    MUSTER_ASSIGN(const Columns stored, LoadColumns(state_folder));
    if (stored.empty()) MUSTER_TRY(StoreColumns(state_folder, columns));
    const MutexLock lock(mutex_);
    columns_[collection.name] = std::move(columns);
    return {};
  }

  Result<std::unique_ptr<FileEncoder>> NewEncoder(const std::string& collection,
                                                  FileSinkState& state) override {
    const MutexLock lock(mutex_);
    const auto known = columns_.find(collection);
    return std::make_unique<CsvEncoder>(known == columns_.end() ? fixed_columns_ : known->second,
                                        state, delimiter_);
  }

 private:
  const Columns fixed_columns_;
  const char delimiter_;
  Mutex mutex_;
  std::map<std::string, Columns> columns_ GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Sink>> OpenCsvSink(const Url& url, Env& env) {
  MUSTER_TRY(CheckParams(url, {"columns", "compress", "delimiter"}));
  MUSTER_ASSIGN(Columns columns, CsvColumns(url));
  MUSTER_ASSIGN(const char delimiter, CsvDelimiter(url));
  return FileSink::Open(url, std::make_unique<CsvFormat>(std::move(columns), delimiter), env);
}

}  // namespace muster::pipeline
