#include <algorithm>

#include "raw_opensearch.h"

#include "core/json.h"

namespace muster::bench {
namespace {

std::string KeyOf(int64_t n) {
  const std::string digits = std::to_string(n);
  return "orders__" + std::string(12 - digits.size(), '0') + digits + "__0";
}

std::string DocumentOf(int64_t n, const std::string& due) {
  return std::string(R"({"kind":")") + kKind + R"(","queue":")" + kQueue + R"(","key":")" +
         KeyOf(n) + R"(","due":)" + due + R"(,"ready":)" + due +
         R"(,"owner":"","epoch":0,"attempt":0,"claim_id":"","write_id":"","body":)" +
         R"("{\"index\":\"orders\",\"shard\":)" + std::to_string(n) +
         R"(,\"start\":0,\"watermark\":\"0000000000000000\",\"read\":0,)" +
         R"(\"written\":0,\"skipped\":0,\"failed\":0}"})";
}

class OpenSearch final : public Table {
 public:
  OpenSearch(const testing::OpenSearchServer& server, const std::string& space)
      : server_(server), alias_("/" + space + "_records") {}

  void Fill(int64_t finished, int64_t due) override {
    for (int64_t n = 1; n <= std::max(filled_, finished + due); ++n) {
      const std::string id = std::string(R"({"_id":")") + kKind + "/" + KeyOf(n) + "\"}}\n";
      if (n > finished + due) {
        Send("{\"delete\":" + id);
      } else {
        const std::string when = n <= finished ? "null" : std::to_string(oldest_due_ms_ + n);
        Send("{\"index\":" + id + DocumentOf(n, when) + "\n");
      }
    }
    Flush();
    filled_ = finished + due;
    oldest_due_ms_ += filled_;
    server_.Call("POST", alias_ + "/_flush");
    server_.Call("POST", alias_ + "/_refresh");
  }

  int64_t Finished() override {
    server_.Call("POST", alias_ + "/_refresh");
    const auto answer =
        Json::parse(server_.Call("POST", alias_ + "/_count",
                                 R"({"query":{"bool":{"must_not":{"exists":{"field":"due"}}}}})"));
    return answer.at("count").get<int64_t>();
  }

 private:
  void Send(const std::string& lines) {
    constexpr size_t kPieceBytes = 2'000'000;
    piece_ += lines;
    if (piece_.size() > kPieceBytes) Flush();
  }

  void Flush() {
    if (!piece_.empty()) server_.Call("POST", alias_ + "/_bulk?filter_path=errors", piece_);
    piece_.clear();
  }

  const testing::OpenSearchServer& server_;
  const std::string alias_;
  std::string piece_;
  int64_t filled_ = 0;
  int64_t oldest_due_ms_ = 0;
};

}  // namespace

std::unique_ptr<Table> OpenSearchTable(const testing::OpenSearchServer& server,
                                       const std::string& space) {
  return std::make_unique<OpenSearch>(server, space);
}

}  // namespace muster::bench
