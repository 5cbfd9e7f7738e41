#include "pipeline/salesforce/salesforce_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/backoff.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/secrets.h"
#include "pipeline/file/csv_record.h"
#include "pipeline/flow/scheme.h"
#include "pipeline/salesforce/salesforce_client.h"
#include "pipeline/salesforce/salesforce_reader.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kDefaultPageRows = 50'000;
constexpr Backoff::Pauses kPolls{.first = 1s, .longest = 15s};
constexpr std::chrono::hours kLongestJob{12};

struct SalesforceOptions {
  std::string object;                // empty: all
  std::vector<std::string> columns;  // empty: all that a bulk query supports
  std::string where;
  int64_t page_rows = kDefaultPageRows;
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
      return Error{Code::kInvalid, client_.origin() + " returned no id for a query job"};
    }
    return id;
  }

  Status Await(const std::string& id, const std::stop_token& stop) {
    const MonoTime deadline = env_.MonoNow() + kLongestJob;
    Backoff polls(env_, stop, kPolls);
    for (;;) {
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
        return Error{Code::kUnavailable, "query job " + id + " has not finished within 12 hours"};
      }
      if (!polls.Pause()) return Error{Code::kCancelled, "stopped"};
    }
  }

 private:
  SalesforceClient& client_;
  Env& env_;
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
    return NewSalesforceReader(*client_, std::move(at), options_.page_rows, std::move(stop));
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
    return WrongUrl(name + " is in plain text in the URL",
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
    return WrongUrl("client_secret, or user and key, are required to log in");
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
