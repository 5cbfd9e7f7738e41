#include "raw_opensearch.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/json.h"
#include "net/http.h"

namespace muster::bench {
namespace {

constexpr int kWarmUpTurns = 2;

struct Document {
  std::string id;
  std::string body;  // escaped, as it stands in the source
  int64_t seq_no = 0;
  int64_t primary_term = 0;
};

int64_t NumberAt(const std::string& text, const char* label, size_t& at) {
  at = text.find(label, at);
  if (at == std::string::npos) throw std::runtime_error("not all was applied: " + text);
  at += std::char_traits<char>::length(label);
  return std::strtoll(text.c_str() + at, nullptr, 10);
}

class Raw final : public Side {
 public:
  Raw(const testing::OpenSearchServer& server, const std::string& space)
      : server_(server), alias_("/" + space + "_records") {}

  Outcome Run(const Load& load) override {
    const int turns = load.turns + kWarmUpTurns;
    std::vector<Document> documents = DueDocuments(size_t(load.workers) * turns * load.batch);
    std::chrono::steady_clock::time_point begin;
    const auto start = [&]() noexcept { begin = std::chrono::steady_clock::now(); };
    std::barrier ready(load.workers, start);
    std::vector<std::exception_ptr> failures(size_t(load.workers));
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < load.workers; ++worker) {
      workers.emplace_back([&, worker] {
        const size_t share = size_t(turns) * load.batch;
        std::span<Document> mine(documents.data() + worker * share, share);
        bool started = false;
        try {
          for (int turn = 0; turn < turns; ++turn) {
            if (turn == kWarmUpTurns) {
              started = true;
              ready.arrive_and_wait();
            }
            Turn(mine.subspan(size_t(turn) * load.batch, size_t(load.batch)));
          }
        } catch (...) {
          failures[size_t(worker)] = std::current_exception();
          if (!started) ready.arrive_and_drop();
        }
      });
    }
    for (std::jthread& worker : workers) worker.join();
    const auto end = std::chrono::steady_clock::now();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    return {load.records(), end - begin};
  }

 private:
  // A claim, and the completion.
  void Turn(std::span<Document> documents) {
    const std::string due = std::to_string(kLeaseMs + 1'800'000'000'000);
    std::string claim;
    for (const Document& document : documents) {
      claim += Header(document) + R"({"doc":{"owner":")" + kOwner +
               R"(","epoch":1,"attempt":1,"due":)" + due + R"(,"ready":)" + due +
               R"(,"claim_id":")" + kRawClaimId + R"(","write_id":")" + kRawClaimId +
               "\"},\"_source\":true}\n";
    }
    Send(claim, documents);
    std::string complete;
    for (const Document& document : documents) {
      complete += Header(document) + R"({"doc":{"owner":")" + kOwner +
                  R"(","attempt":1,"write_id":")" + kRawClaimId + R"(","body":)" + document.body +
                  ",\"due\":null,\"ready\":null}}\n";
    }
    Send(complete, documents);
  }

  static std::string Header(const Document& document) {
    return R"({"update":{"_id":")" + document.id + R"(","if_seq_no":)" +
           std::to_string(document.seq_no) + R"(,"if_primary_term":)" +
           std::to_string(document.primary_term) + "}}\n";
  }

  void Send(std::string body, std::span<Document> documents) {
    net::HttpRequest request{.method = "POST", .url = server_.Url(alias_ + "/_bulk")};
    request.headers = {{"Content-Type", "application/x-ndjson"}};
    request.body = std::move(body);
    const auto answer = client_.Send(request);
    if (!answer) throw std::runtime_error(answer.error().ToString());
    size_t at = 0;
    for (Document& document : documents) {
      (void)NumberAt(answer->body, "\"update\":{", at);
      document.seq_no = NumberAt(answer->body, "\"_seq_no\":", at);
      document.primary_term = NumberAt(answer->body, "\"_primary_term\":", at);
    }
  }

  std::vector<Document> DueDocuments(size_t count) {
    std::vector<Document> documents;
    Json after;
    while (documents.size() < count) {
      Json query{{"size", std::min<size_t>(5000, count - documents.size())},
                 {"sort", {{{"ready", "asc"}}}},
                 {"query", {{"exists", {{"field", "ready"}}}}},
                 {"seq_no_primary_term", true},
                 {"_source", {"body"}}};
      if (!after.is_null()) query["search_after"] = after;
      const auto answer = Json::parse(server_.Call("POST", alias_ + "/_search", query.dump()));
      const auto& hits = answer.at("hits").at("hits");
      if (hits.empty()) throw std::runtime_error("too few records are due");
      for (const auto& hit : hits) {
        documents.push_back({hit.at("_id"), hit.at("_source").at("body").dump(), hit.at("_seq_no"),
                             hit.at("_primary_term")});
      }
      after = hits.back().at("sort");
    }
    return documents;
  }

  const testing::OpenSearchServer& server_;
  const std::string alias_;
  net::HttpClient client_{net::HttpOptions{.use_proxy = false}};
};

}  // namespace

std::unique_ptr<Side> RawOpenSearch(const testing::OpenSearchServer& server,
                                    const std::string& space) {
  return std::make_unique<Raw>(server, space);
}

}  // namespace muster::bench
