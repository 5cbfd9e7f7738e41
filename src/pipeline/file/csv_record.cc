#include "pipeline/file/csv_record.h"

#include <algorithm>
#include <cstring>

namespace muster::pipeline {
namespace {

Error StrayQuote(size_t column, std::string_view what) {
  return {Code::kInvalid, std::string(what) + " in column " + std::to_string(column)};
}

}  // namespace

Status CsvParser::Parse(std::string_view record) {
  fields_.clear();
  if (!record.empty() && std::memchr(record.data(), '"', record.size()) != nullptr) {
    return ParseQuoted(record);
  }
  ParsePlain(record);
  return {};
}

void CsvParser::ParsePlain(std::string_view record) {
  for (;;) {
    const size_t end = record.find(delimiter_);
    fields_.push_back({record.substr(0, end)});
    if (end == std::string_view::npos) return;
    record.remove_prefix(end + 1);
  }
}

Status CsvParser::ParseQuoted(std::string_view record) {
  unquoted_.clear();
  unquoted_.reserve(record.size());  // never reallocates, so views into it stay valid
  size_t at = 0;
  for (;;) {
    if (at >= record.size() || record[at] != '"') {
      const size_t end = std::min(record.find(delimiter_, at), record.size());
      const std::string_view text = record.substr(at, end - at);
      if (text.find('"') != std::string_view::npos) {
        return StrayQuote(fields_.size() + 1, "a quote inside unquoted text");
      }
      fields_.push_back({text});
      at = end;
    } else {
      const size_t begin = ++at;
      const size_t copied = unquoted_.size();
      size_t piece = begin;  // start of what is not copied yet
      for (;;) {
        at = record.find('"', at);
        if (at == std::string_view::npos) {
          return StrayQuote(fields_.size() + 1, "a quote that is not closed");
        }
        if (at + 1 == record.size() || record[at + 1] != '"') break;
        unquoted_.append(record, piece, at + 1 - piece);
        at += 2;
        piece = at;
      }
      if (piece == begin) {
        fields_.push_back({record.substr(begin, at - begin), true});
      } else {
        unquoted_.append(record, piece, at - piece);
        fields_.push_back({std::string_view(unquoted_).substr(copied), true});
      }
      ++at;
    }
    if (at == record.size()) return {};
    if (record[at] != delimiter_) return StrayQuote(fields_.size(), "text after a closing quote");
    ++at;
  }
}

void AppendCsvField(std::string& line, std::string_view text, char delimiter) {
  const bool plain = !text.empty() && std::none_of(text.begin(), text.end(), [&](char c) {
    return c == delimiter || c == '"' || c == '\n' || c == '\r';
  });
  if (plain) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace muster::pipeline
