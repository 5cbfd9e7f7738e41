#include "core/sha256.h"

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

Result<std::string> HashHex(std::string_view algorithm, std::string_view bytes) {
  const EVP_MD* digest = nullptr;
  if (algorithm == "MD5") digest = EVP_md5();
  if (algorithm == "SHA-1") digest = EVP_sha1();
  if (algorithm == "SHA-256") digest = EVP_sha256();
  if (algorithm == "SHA-384") digest = EVP_sha384();
  if (algorithm == "SHA-512") digest = EVP_sha512();
  if (digest == nullptr)
    return Error{Code::kInvalid, "Unknown hash algorithm: " + std::string(algorithm)};
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), hash.data(), &size, digest, nullptr) != 1)
    return Error{Code::kInternal, "OpenSSL refuses to compute " + std::string(algorithm)};
  return Hex({reinterpret_cast<const char*>(hash.data()), size});
}

std::string Sha256Hex(std::string_view bytes) {
  const Result<std::string> hash = HashHex("SHA-256", bytes);
  assert(hash);
  return *hash;
}

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  const int done = EVP_DigestInit_ex(state_->digest.get(), EVP_sha256(), nullptr);
  assert(done == 1);
}

Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  const int done = EVP_DigestUpdate(state_->digest.get(), bytes.data(), bytes.size());
  assert(done == 1);
}

std::string Sha256::Hex() {
  std::array<char, 32> digest;
  const int done = EVP_DigestFinal_ex(state_->digest.get(),
                                      reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  assert(done == 1);
  return muster::Hex({digest.data(), digest.size()});
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
