#include "pipeline/salesforce/salesforce_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/url.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/file/record_reader.h"
#include "pipeline/json/json_check.h"
#include "pipeline/json/json_text.h"

namespace muster::pipeline {
namespace {

constexpr size_t kMaxRecordBytes = size_t{32} << 20;

// A page of results as a stream of bytes.
class PageStream final : public ByteStream {
 public:
  explicit PageStream(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<size_t> Read(char* to, size_t size) override {
    const size_t count = std::min(size, bytes_.size() - at_);
    std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

class SalesforceReader final : public Reader {
 public:
  SalesforceReader(SalesforceClient& client, SalesforcePosition position, int64_t page_rows,
                   std::stop_token stop)
      : client_(client),
        at_(std::move(position)),
        page_rows_(page_rows),
        stop_(std::move(stop)),
        skip_(at_.row) {}

  Result<std::optional<Document>> Next() override {
    while (true) {
      if (!page_) {
        if (ended_) return std::nullopt;
        MUSTER_TRY(FetchPage());
      }
      MUSTER_ASSIGN(const auto record, page_->Next());
      if (!record) {
        EndPage();
        continue;
      }
      if (record->text.empty()) continue;
      if (columns_.empty()) {
        MUSTER_TRY(ReadHeader(record->text));
        continue;
      }
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      ++at_.row;
      ++at_.before;
      return DocumentOf(*record);
    }
  }

 private:
  Status FetchPage() {
    std::string path = "jobs/query/" + PercentEncode(at_.job) +
                       "/results?maxRecords=" + std::to_string(page_rows_);
    if (!at_.locator.empty()) path += "&locator=" + PercentEncode(at_.locator);
    MUSTER_ASSIGN(net::HttpResponse response, client_.Get(path, stop_));
    const std::string next(response.Header("Sforce-Locator").value_or("null"));
    next_locator_ = next == "null" ? "" : next;
    page_ = std::make_unique<RecordReader>(std::make_unique<PageStream>(std::move(response.body)),
                                           0, kMaxRecordBytes, CsvRecords{});
    columns_.clear();
    return {};
  }

  void EndPage() {
    page_.reset();
    ended_ = next_locator_.empty();
    at_.locator = next_locator_;
    at_.row = 0;
  }

  Status ReadHeader(std::string_view text) {
    MUSTER_TRY(parser_.Parse(WithoutBom(text)));
    keys_.clear();
    for (const CsvField& field : parser_.fields()) {
      std::string key = columns_.empty() ? "{" : ",";
      AppendJsonString(key, field.text);
      keys_.push_back(key + ":");
      columns_.emplace_back(field.text);
    }
    return {};
  }

  Document DocumentOf(const RecordReader::Record& record) {
    position_ = at_.ToString();
    Document document{
        .id = {}, .routing = {}, .body = record.text, .position = position_, .defect = {}};
    defect_ = Convert(record);
    document.defect = defect_;
    if (!defect_.empty()) return document;
    document.body = body_;
    document.id = id_;
    return document;
  }

  // Builds the record's object; returns why it cannot, or an empty string.
  std::string Convert(const RecordReader::Record& record) {
    if (record.too_long) return "the record is longer than 32 MiB";
    if (record.open_quote) return "a quote that is not closed";
    if (!IsUtf8(record.text)) return "invalid UTF-8";
    if (const Status parsed = parser_.Parse(record.text); !parsed) return parsed.error().message;
    const std::vector<CsvField>& fields = parser_.fields();
    if (fields.size() != columns_.size()) {
      return std::to_string(fields.size()) + " fields instead of " +
             std::to_string(columns_.size());
    }
    body_.clear();
    id_.clear();
    for (size_t i = 0; i < fields.size(); ++i) {
      body_ += keys_[i];
      // Salesforce has no empty strings: empty means null.
      if (fields[i].text.empty()) {
        body_ += "null";
      } else {
        AppendUtf8JsonString(body_, fields[i].text);
      }
      if (columns_[i] == "Id") id_ = fields[i].text;
    }
    body_ += '}';
    return {};
  }

  SalesforceClient& client_;
  SalesforcePosition at_;
  const int64_t page_rows_;
  const std::stop_token stop_;
  int64_t skip_;
  std::unique_ptr<RecordReader> page_;
  std::string next_locator_;
  bool ended_ = false;
  std::vector<std::string> columns_;
  std::vector<std::string> keys_;
  CsvParser parser_{','};
  std::string position_;
  std::string body_;
  std::string id_;
  std::string defect_;
};

}  // namespace

std::string SalesforcePosition::ToString() const {
  char number[24];
  std::snprintf(number, sizeof number, "%015lld", static_cast<long long>(before));
  return std::string(number) + ":" + job + ":" + locator + ":" + std::to_string(row);
}

Result<SalesforcePosition> SalesforcePosition::Parse(const std::string& text) {
  if (text.empty()) return SalesforcePosition();
  SalesforcePosition position;
  const size_t a = text.find(':');
  const size_t b = text.find(':', a + 1);
  const size_t c = text.rfind(':');
  const auto number = [&](size_t begin, size_t end, int64_t& value) {
    const auto [stopped, failed] = std::from_chars(text.data() + begin, text.data() + end, value);
    return failed == std::errc() && stopped == text.data() + end;
  };
  if (a == std::string::npos || b == std::string::npos || c <= b ||
      !number(0, a, position.before) || !number(c + 1, text.size(), position.row)) {
    return Error{Code::kInvalid, "'" + text + "' is not a position of a Salesforce object"};
  }
  position.job = text.substr(a + 1, b - a - 1);
  position.locator = text.substr(b + 1, c - b - 1);
  return position;
}

std::unique_ptr<Reader> NewSalesforceReader(SalesforceClient& client, SalesforcePosition position,
                                            int64_t page_rows, std::stop_token stop) {
  return std::make_unique<SalesforceReader>(client, std::move(position), page_rows,
                                            std::move(stop));
}

}  // namespace muster::pipeline
