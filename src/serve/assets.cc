#include "serve/assets.h"

#include "core/gzip.h"
#include "serve/embedded.h"

namespace muster::serve {
namespace {

std::string TypeOf(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

std::vector<Asset> Load() {
  std::vector<Asset> assets;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name == kApiTemplateName) continue;
    const std::string name(file.name);
    assets.push_back({.path = name == "index.html" ? "/" : "/" + name,
                      .content_type = TypeOf(name),
                      .bytes = file.bytes,
                      .packed = Gzip(file.bytes)});
  }
  return assets;
}

}  // namespace

const std::vector<Asset>& Assets() {
  static const std::vector<Asset> kAssets = Load();
  return kAssets;
}

std::string_view EmbeddedText(std::string_view name) {
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name == name) return file.bytes;
  }
  return {};
}

}  // namespace muster::serve
