#pragma once

#include <stop_token>

#include "serve/client_socket.h"
#include "serve/web_message.h"

namespace muster::serve {

struct AnswerForm {
  const net::HttpHeaders& headers;  // of every answer
  bool head_only = false;           // to a HEAD request
  bool keep = false;                // another request may follow
  bool chunks = true;  // the client understands them; otherwise a stream ends by hanging up
};

// Writes a response; a stream is written until it ends. False: no other can be written.
bool WriteResponse(const WebResponse& response, const AnswerForm& form, const std::stop_token& stop,
                   ClientSocket& client);

}  // namespace muster::serve
