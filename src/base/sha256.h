#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace muster {

// Two lower-case hexadecimal digits for each byte.
std::string Hex(std::string_view bytes);

// The SHA-256 of the bytes, as 64 hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

// The same of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(std::string_view bytes);
  // Of everything added. To be called once, at the end.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The HMAC of a text by SHA-256: 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);

}  // namespace muster
