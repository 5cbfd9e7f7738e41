#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "serve/web_message.h"

namespace muster::serve {

// Parses the head of one HTTP/1 request: the request line and the headers.
class HeadParser {
 public:
  HeadParser();
  ~HeadParser();
  HeadParser(const HeadParser&) = delete;
  HeadParser& operator=(const HeadParser&) = delete;

  // Takes the next bytes; returns how many of them belong to the head. Not to be called again once
  // done or refused.
  size_t Feed(std::string_view bytes);

  bool done() const;
  // The answer to bytes that are not a request; after it the connection cannot be used.
  const std::optional<WebResponse>& refusal() const;

  // When done.
  WebRequest& request();
  bool keep_alive() const;
  bool chunks() const;  // the client understands chunked answers

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace muster::serve
