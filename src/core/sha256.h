#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster {

// Two lower-case hex digits per byte.
std::string Hex(std::string_view bytes);

// The digest of the bytes, in hex digits, by an algorithm of AWS and JSONata: "MD5", "SHA-1",
// "SHA-256", "SHA-384", "SHA-512". kInvalid: unknown algorithm. kInternal: OpenSSL has it disabled.
Result<std::string> HashHex(std::string_view algorithm, std::string_view bytes);

// The SHA-256 of the bytes, as 64 hex digits.
std::string Sha256Hex(std::string_view bytes);

// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(std::string_view bytes);
  // The digest of everything added. Call once, at the end.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// HMAC-SHA256 of a text: 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);

}  // namespace muster
