#include "base/base64.h"

#include <openssl/evp.h>

namespace muster {

std::string EncodeBase64(std::string_view bytes) {
  // A multiple of three, so that padding stands at the end only.
  constexpr size_t kPiece = size_t{3} << 20;
  std::string text;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    const size_t before = text.size();
    // OpenSSL ends its text with a NUL.
    text.resize(before + (piece.size() + 2) / 3 * 4 + 1);
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data() + before),
                    reinterpret_cast<const unsigned char*>(piece.data()),
                    static_cast<int>(piece.size()));
    text.pop_back();
  }
  return text;
}

}  // namespace muster
