#include "documents.h"

#include <fstream>
#include <random>
#include <stdexcept>

namespace muster::bench {
namespace {

constexpr const char* kWords[] = {"lorem", "ipsum",      "dolor",   "sit",    "amet",  "elit",
                                  "sed",   "adipiscing", "eiusmod", "tempor", "magna", "labore"};

class Generator {
 public:
  void Append(std::string& text, int64_t number) {
    text += "{\"order_id\":" + std::to_string(number);
    text += ",\"customer\":{\"name\":\"" + Words(3) + "\",\"email\":\"user" +
            std::to_string(number) +
            "@example.com\",\"vip\":" + (Below(10) == 0 ? "true" : "false");
    text += "},\"created\":\"2024-03-1" + std::to_string(Below(10)) +
            "T10:30:00Z\",\"price\":" + std::to_string(Below(1000)) + "." +
            std::to_string(10 + Below(90)) + ",\"items\":[";
    const int items = 1 + Below(6);
    for (int i = 0; i < items; ++i) {
      if (i > 0) text += ',';
      text += "{\"sku\":\"SKU-" + std::to_string(100'000 + Below(900'000)) +
              "\",\"n\":" + std::to_string(1 + Below(5)) + "}";
    }
    text += "],\"note\":\"" + Words(10 + Below(50)) + "\"}\n";
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }

  std::string Words(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ' ';
      text += kWords[Below(static_cast<int>(std::size(kWords)))];
    }
    return text;
  }

  std::mt19937 random_{42};
};

}  // namespace

int64_t WriteDocuments(const std::string& path, uint64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  Generator generator;
  std::string text;
  uint64_t written = 0;
  int64_t lines = 0;
  while (written < bytes) {
    text.clear();
    for (int i = 0; i < 1000 && written + text.size() < bytes; ++i) generator.Append(text, lines++);
    file << text;
    written += text.size();
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
  return lines;
}

}  // namespace muster::bench
