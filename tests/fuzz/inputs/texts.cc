// Short texts within what others wrote: options, headers, positions, patterns.

#include "change/outbox.h"
#include "cli/pipeline_settings.h"
#include "core/base64.h"
#include "core/decimal.h"
#include "core/json.h"
#include "core/regex.h"
#include "fuzz/inputs/inputs.h"
#include "metadata/cluster_version.h"
#include "muster/work.h"
#include "net/aws_credentials.h"
#include "net/http.h"
#include "pipeline/opensearch/opensearch_bulk_item.h"
#include "pipeline/salesforce/salesforce_reader.h"
#include "pipeline/table/row_key.h"
#include "plan/explain/prices.h"
#include "replica/exec_projection.h"
#include "replica/memory_read_model.h"
#include "sql/pgoutput.h"
#include "sql/postgres_errors.h"
#include "sql/postgres_table.h"
#include "states/run/mocks.h"
#include "task/call/exec_executor.h"
#include "task/test_context.h"

namespace muster::fuzz {
namespace {

void ReadText(std::string_view bytes) {
  const size_t kind = TakeChoice(bytes, 12);
  const std::string text(bytes);
  if (kind == 0) static_cast<void>(net::ParseHttpDate(text));
  if (kind == 1) static_cast<void>(DecodeBase64(text));
  if (kind == 2) static_cast<void>(sql::ParsePgConnectRefusal(text));
  if (kind == 3) {
    const auto lsn = sql::ParsePgLsn(text);
    if (lsn && sql::ParsePgLsn(sql::PgLsnText(*lsn)) != lsn) __builtin_trap();
  }
  if (kind == 4) {
    const auto name = sql::PgName::Parse(text);
    if (name) static_cast<void>(name->Sql());
  }
  if (kind == 5) static_cast<void>(metadata::VersionRange::Parse(text));
  if (kind == 6) {
    const auto pattern = Pattern::Parse(text);
    if (pattern) static_cast<void>(pattern->Matches(text));
  }
  if (kind == 7) {
    const auto limit = work::FailureLimit::Parse(text);
    if (limit && !work::FailureLimit::Parse(limit->ToString())) __builtin_trap();
  }
  if (kind == 8) static_cast<void>(change::ParseOutbox(text));
  if (kind == 9) static_cast<void>(Decimal::Parse(text));
  if (kind == 10) static_cast<void>(pipeline::SalesforcePosition::Parse(text));
  if (kind == 11) static_cast<void>(pipeline::DecodeKey(text, 2));
}

void ReadPrices(std::string_view bytes) {
  static_cast<void>(plan::ReadPriceFile(FileWith(bytes, ".prices.yaml")));
}

void ReadMocks(std::string_view bytes) {
  const Json json = Json::parse(bytes, nullptr, false);
  if (json.is_discarded()) return;
  static_cast<void>(states::MockExecutor::FromJson(json, "", ""));
  static_cast<void>(states::MockExecutor::FromJson(json, "machine", "case"));
}

void ReadBulkAnswer(std::string_view bytes) {
  for (const bool created : {false, true}) {
    const auto items = pipeline::ReadBulkItems(std::string(bytes), created);
    if (!items || !*items) continue;
    for (const pipeline::BulkItem& item : **items) {
      static_cast<void>(pipeline::ErrorOf("index", item));
      static_cast<void>(pipeline::LostAMappingRace(item));
      static_cast<void>(pipeline::CurrentVersion(item.reason));
    }
  }
}

// Two parts: the files of AWS's own tools.
void ReadCredentials(std::string_view bytes) {
  const auto [credentials, config] = TakePart(bytes);
  const std::string credentials_file = FileWith(credentials, ".credentials");
  const std::string config_file = FileWith(config, ".config");
  net::AwsSurroundings surroundings;
  surroundings.variable = [&](std::string_view name) -> std::string {
    if (name == "AWS_SHARED_CREDENTIALS_FILE") return credentials_file;
    if (name == "AWS_CONFIG_FILE") return config_file;
    return name == "AWS_EC2_METADATA_DISABLED" ? "true" : "";
  };
  static_cast<void>(net::AwsCredentialChain(RealEnv(), surroundings).Get());
}

void ReadLimits(std::string_view bytes) {
  pipeline::Throttle throttle(RealEnv());
  cli::PipelineSettings settings;
  settings.limits_file = FileWith(bytes, ".limits.yaml");
  static_cast<void>(cli::LimitsWatcher::Start(settings, throttle, RealEnv()));
}

// What a child process prints: the result of a task, or a projection's acknowledgements.
void ReadChild(std::string_view bytes) {
  const bool is_task = TakeChoice(bytes, 2) == 0;
  const std::string path = FileWith(bytes, ".printed");
  if (is_task) {
    task::TestContext context;
    const states::TaskCall call{.resource = "muster:exec",
                                .input = {{"Command", {"cat", path}}},
                                .credentials = {},
                                .token = "t",
                                .execution = "e",
                                .state = "S"};
    static_cast<void>(task::MakeExecExecutor()->Start(call, context));
    return;
  }
  const auto projection =
      replica::NewExecProjection({.name = "p", .command = {"cat", path}}, RealEnv());
  if (!projection) return;
  const auto processor = (*projection)->Build({});
  if (!processor) return;
  std::vector<events::Event> batch;
  for (int64_t i = 1; i <= 3; ++i) {
    batch.push_back({.position = i,
                     .stream = "s",
                     .version = i,
                     .id = "i",
                     .type = "T",
                     .payload = "{}",
                     .metadata = ""});
  }
  replica::MemoryTransaction transaction;
  static_cast<void>((*processor)->Handle(batch, transaction));
}

constexpr Input kInputs[] = {
    {"texts", ReadText},      {"prices", ReadPrices},           {"mocks", ReadMocks},
    {"bulk", ReadBulkAnswer}, {"credentials", ReadCredentials}, {"limits", ReadLimits},
    {"child", ReadChild}};

}  // namespace

std::span<const Input> TextInputs() { return kInputs; }

}  // namespace muster::fuzz
