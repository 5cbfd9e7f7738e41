#include "pipeline/salesforce/salesforce_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/secrets.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/file/record_reader.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/json/json_check.h"
#include "pipeline/json/json_text.h"
#include "pipeline/salesforce/salesforce_client.h"

namespace muster::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kDefaultPageRows = 50'000;
constexpr size_t kMaxRecordBytes = size_t{32} << 20;
constexpr milliseconds kFirstPoll{1'000};
constexpr milliseconds kSlowestPoll{15'000};
constexpr std::chrono::hours kLongestJob{12};

struct SalesforceOptions {
  std::string object;                // empty: all
  std::vector<std::string> columns;  // empty: all that a bulk query supports
  std::string where;
  int64_t page_rows = kDefaultPageRows;
};

// Where reading continues: a row in a page of a job's results.
struct SalesforcePosition {
  int64_t before = 0;   // rows of the whole object; makes positions sort
  std::string job;      // empty: start a new job
  std::string locator;  // empty: the first page
  int64_t row = 0;      // of that page

  std::string ToString() const {
    char number[24];
    std::snprintf(number, sizeof number, "%015lld", static_cast<long long>(before));
    return std::string(number) + ":" + job + ":" + locator + ":" + std::to_string(row);
  }

  static Result<SalesforcePosition> Parse(const std::string& text) {
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
};

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

// Starts query jobs and waits for them.
class QueryJobs {
 public:
  QueryJobs(SalesforceClient& client, Env& env) : client_(client), env_(env) {}

  Result<std::string> Start(const std::string& soql, const std::stop_token& stop) {
    MUSTER_ASSIGN(
        const Json job,
        client_.PostJson("jobs/query", Json{{"operation", "query"}, {"query", soql}}, stop));
    std::string id = TextIn(job, "id");
    if (id.empty()) {
      return Error{Code::kInvalid, client_.origin() + " gives no id for a query job"};
    }
    return id;
  }

  Status Await(const std::string& id, const std::stop_token& stop) {
    const MonoTime deadline = env_.MonoNow() + kLongestJob;
    for (milliseconds pause = kFirstPoll;; pause = std::min(2 * pause, kSlowestPoll)) {
      MUSTER_ASSIGN(const Json job, client_.GetJson("jobs/query/" + PercentEncode(id), stop));
      const std::string state = TextIn(job, "state");
      if (state == "JobComplete") return {};
      if (state == "Failed" || state == "Aborted") {
        const std::string reason = TextIn(job, "errorMessage");
        return Error{Code::kInvalid, "query job " + id + " of " + client_.origin() + " ended as " +
                                         state + ": " +
                                         (reason.empty() ? "no reason is given" : reason)};
      }
      if (env_.MonoNow() > deadline) {
        return Error{Code::kUnavailable, "query job " + id + " has not ended in 12 hours"};
      }
      if (!env_.Sleep(pause, stop)) return Error{Code::kCancelled, "stopped"};
    }
  }

 private:
  SalesforceClient& client_;
  Env& env_;
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

class SalesforceSource final : public Source {
 public:
  SalesforceSource(std::unique_ptr<SalesforceClient> client, SalesforceOptions options, Env& env)
      : client_(std::move(client)), options_(std::move(options)), env_(env) {}

  // Without fields when listing all objects: they would take one call each.
  Result<std::vector<Collection>> Collections() override {
    std::vector<Collection> all;
    if (!options_.object.empty()) {
      MUSTER_ASSIGN(std::string metadata, Metadata(options_.object));
      all.push_back({options_.object, std::move(metadata)});
      return all;
    }
    MUSTER_ASSIGN(const std::vector<std::string> names, QueryableObjects());
    for (const std::string& name : names) all.push_back({name});
    return all;
  }

  Result<std::optional<Collection>> Describe(const std::string& collection) override {
    if (!options_.object.empty() && options_.object != collection) {
      return std::optional<Collection>();
    }
    auto metadata = Metadata(collection);
    if (!metadata && metadata.error().code == Code::kNotFound) return std::optional<Collection>();
    if (!metadata) return metadata.error();
    return std::optional<Collection>({collection, *std::move(metadata)});
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    return std::vector<Partition>{Partition{.collection = collection}};
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    MUSTER_ASSIGN(SalesforcePosition at, SalesforcePosition::Parse(position));
    QueryJobs jobs(*client_, env_);
    if (at.job.empty()) {
      MUSTER_ASSIGN(const std::vector<std::string> fields, FieldsOf(partition.collection));
      std::string soql;
      for (const std::string& field : fields) soql += (soql.empty() ? "SELECT " : ", ") + field;
      soql += " FROM " + partition.collection;
      if (!options_.where.empty()) soql += " WHERE " + options_.where;
      MUSTER_ASSIGN(at.job, jobs.Start(soql, stop));
    }
    MUSTER_TRY(jobs.Await(at.job, stop));
    return std::make_unique<SalesforceReader>(*client_, std::move(at), options_.page_rows,
                                              std::move(stop));
  }

  std::optional<double> FractionBefore(const Partition&, const std::string&) override {
    return std::nullopt;
  }

 private:
  Result<std::vector<std::string>> QueryableObjects() {
    MUSTER_ASSIGN(const Json answer, client_->GetJson("sobjects", {}));
    std::vector<std::string> names;
    for (const Json& object : MemberIn(answer, "sobjects")) {
      const Json& queryable = MemberIn(object, "queryable");
      if (queryable.is_boolean() && queryable.get<bool>()) names.push_back(TextIn(object, "name"));
    }
    return names;
  }

  // Bulk queries cannot select all fields, and do not support compound and binary ones.
  Result<std::vector<std::string>> FieldsOf(const std::string& object) {
    if (!options_.columns.empty()) return options_.columns;
    MUSTER_ASSIGN(const Json answer,
                  client_->GetJson("sobjects/" + PercentEncode(object) + "/describe", {}));
    std::vector<std::string> fields;
    for (const Json& field : MemberIn(answer, "fields")) {
      const std::string type = TextIn(field, "type");
      const std::string name = TextIn(field, "name");
      const bool can_be_had = type != "address" && type != "location" && type != "base64";
      if (can_be_had && !name.empty()) fields.push_back(name);
    }
    if (fields.empty()) {
      return Error{Code::kInvalid, client_->origin() + ": " + object + " has no fields to query"};
    }
    return fields;
  }

  Result<std::string> Metadata(const std::string& object) {
    MUSTER_ASSIGN(const std::vector<std::string> fields, FieldsOf(object));
    Json columns = Json::array();
    for (const std::string& field : fields) {
      columns.push_back({{"name", field}, {"type", "text"}, {"nullable", field != "Id"}});
    }
    return ToJsonText(Json{{"columns", columns}, {"key", Json::array({"Id"})}});
  }

  const std::unique_ptr<SalesforceClient> client_;
  const SalesforceOptions options_;
  Env& env_;
};

Error WrongUrl(const std::string& what, const std::string& hint = "") {
  return Error{Code::kInvalid, "salesforce: " + what, hint};
}

Result<std::string> SecretParam(const Url& url, const std::string& name) {
  const std::string text = url.Param(name).value_or("");
  if (!text.empty() && !IsSecretReference(text)) {
    return WrongUrl(name + " is written into the URL",
                    "give it by reference: " + name + "=${env:NAME} or ${file:PATH}");
  }
  return ExpandSecrets(text);
}

Result<SalesforceLogin> LoginOf(const Url& url) {
  SalesforceLogin login;
  MUSTER_ASSIGN(login.client_id, ExpandSecrets(url.Param("client_id").value_or("")));
  MUSTER_ASSIGN(login.client_secret, SecretParam(url, "client_secret"));
  MUSTER_ASSIGN(login.key, SecretParam(url, "key"));
  login.user = url.Param("user").value_or("");
  login.audience = url.Param("audience").value_or(login.audience);
  if (login.client_id.empty()) return WrongUrl("client_id is missing");
  const bool by_key = !login.key.empty() && !login.user.empty() && login.client_secret.empty();
  const bool by_secret = !login.client_secret.empty() && login.key.empty() && login.user.empty();
  if (!by_key && !by_secret) {
    return WrongUrl("it takes client_secret, or user and key, to log in");
  }
  return login;
}

Result<SalesforceOptions> OptionsOf(const Url& url) {
  SalesforceOptions options;
  options.object = url.path.empty() ? "" : url.path.substr(1);
  options.where = url.Param("where").value_or("");
  if (const auto names = url.Param("columns")) {
    CsvParser parser(',');
    MUSTER_TRY(parser.Parse(*names));
    for (const CsvField& field : parser.fields()) options.columns.emplace_back(field.text);
  }
  // Names are inserted into the query verbatim.
  std::vector<std::string> checked = options.columns;
  checked.push_back(options.object);
  for (const std::string& name : checked) {
    const auto is_wrong = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.';
    };
    if (std::find_if(name.begin(), name.end(), is_wrong) != name.end()) {
      return WrongUrl("'" + name + "' is not the name of an object or field");
    }
  }
  if (const auto rows = url.Param("max_records")) {
    const auto [end, failed] =
        std::from_chars(rows->data(), rows->data() + rows->size(), options.page_rows);
    if (failed != std::errc() || end != rows->data() + rows->size() || options.page_rows < 1) {
      return WrongUrl("max_records must be a number");
    }
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<Source>> OpenSalesforceSource(const Url& url, Env& env) {
  MUSTER_TRY(CheckParams(url, {"client_id", "client_secret", "user", "key", "audience", "version",
                               "where", "columns", "max_records"}));
  if (url.host.empty()) return WrongUrl("no host is named");
  MUSTER_ASSIGN(SalesforceLogin login, LoginOf(url));
  MUSTER_ASSIGN(SalesforceOptions options, OptionsOf(url));
  const bool plain = url.scheme == "salesforce+http";
  std::string origin = (plain ? "http://" : "https://") + url.host;
  if (url.port) origin += ":" + std::to_string(*url.port);
  auto client = std::make_unique<SalesforceClient>(
      std::move(origin), url.Param("version").value_or("60.0"), std::move(login), env);
  return std::make_unique<SalesforceSource>(std::move(client), std::move(options), env);
}

}  // namespace muster::pipeline
