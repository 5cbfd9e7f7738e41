#include "pipeline/opensearch/data_streams.h"

#include <set>

#include "core/json_fields.h"
#include "core/number.h"
#include "pipeline/opensearch/opensearch_requests.h"

namespace muster::pipeline {
namespace {

// So that the numbers of its shards fit in an int.
constexpr int kHighestGeneration = 200'000;

}  // namespace

DataStreams DataStreamsIn(const Json& list) {
  DataStreams streams;
  for (const Json& one : list) {
    const std::string name = TextIn(one, "name");
    if (name.empty()) continue;
    DataStream& stream = streams[name];
    const Json& hidden = MemberIn(one, "hidden");
    stream.is_hidden = hidden.is_boolean() && hidden.get<bool>();
    for (const Json& index : MemberIn(one, "indices")) {
      const std::string of = TextIn(index, "index_name");
      if (!of.empty()) stream.indices.push_back(of);
    }
  }
  return streams;
}

Result<DataStreams> AskForDataStreams(net::OpenSearchClient& client, Env& env,
                                      const std::string& name, const std::stop_token& stop) {
  const std::string path = "/_data_stream" + (name.empty() ? "" : "/" + net::OpenSearchPath(name));
  const auto answer = AskForJson(client, env, {.path = path}, stop);
  if (answer) return DataStreamsIn(MemberIn(*answer, "data_streams"));
  if (IsTransient(answer.error().code)) return answer.error();
  return DataStreams();
}

std::vector<int> FirstShardsOf(const std::vector<std::string>& indices) {
  std::vector<int> by_place;
  std::vector<int> by_name;
  std::set<int> taken;
  for (const std::string& index : indices) {
    by_place.push_back(static_cast<int>(by_place.size() + 1) * kShardsPerIndex);
    const auto generation = ParseNumber<int>(index.substr(index.rfind('-') + 1));
    const bool fits = generation && *generation > 0 && *generation <= kHighestGeneration &&
                      taken.insert(*generation).second;
    if (fits) by_name.push_back(*generation * kShardsPerIndex);
  }
  // An index that was added by hand may have any name.
  return by_name.size() == indices.size() ? by_name : by_place;
}

}  // namespace muster::pipeline
