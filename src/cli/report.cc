#include "cli/report.h"

#include "cli/terminal.h"
#include "core/json.h"
#include "core/secrets.h"

namespace muster::cli {
namespace {

// Servers send multi-line messages.
std::string OneLine(std::string_view text) {
  std::string line;
  for (char c : Redact(text)) {
    bool space = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : c;
  }
  if (line.ends_with(' ')) line.pop_back();
  return Printable(line);
}

}  // namespace

void ReportError(std::ostream& err, const Error& error, bool json) {
  std::string message = OneLine(error.message);
  std::string hint = OneLine(error.hint);
  if (json) {
    Json object{{"code", CodeName(error.code)}, {"message", message}};
    if (!hint.empty()) object["hint"] = hint;
    err << ToJsonText(Json{{"error", object}}) << '\n';
    return;
  }
  err << "muster: " << message << '\n';
  if (!hint.empty()) err << "  hint: " << hint << '\n';
}

}  // namespace muster::cli
