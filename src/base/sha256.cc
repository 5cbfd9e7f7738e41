#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cassert>

namespace muster {

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

std::string Sha256Hex(std::string_view bytes) {
  std::array<char, 32> digest;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                 nullptr, EVP_sha256(), nullptr);
  assert(done == 1);
  return Hex({digest.data(), digest.size()});
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<char, 32> digest;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                   reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  assert(done != nullptr);
  return {digest.data(), digest.size()};
}

}  // namespace muster
