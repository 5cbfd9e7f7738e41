#pragma once

#include <memory>
#include <string>

#include "muster/result.h"

struct ssl_ctx_st;

namespace muster::serve {

struct FreeTls {
  void operator()(ssl_ctx_st* context) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTls>;

// From PEM files; null if both are empty. kInvalid: they cannot be used.
Result<TlsContext> LoadTls(const std::string& certificate, const std::string& key);

}  // namespace muster::serve
