#pragma once

#include <string>
#include <string_view>

#include "muster/events.h"
#include "muster/result.h"

namespace muster {

// An event on one line of JSON, without the newline:
//   {"position":1,"stream":"order-1","version":1,"type":"Placed","id":"…","time_ms":…,
//    "payload":{…},"metadata":{…}}
// Payload and metadata stand there as they are if they are JSON on one line, else as a string
// under payload_text or metadata_text.
std::string EventToJson(const Event& event);

// What is to be appended, from {"stream":…,"type":…,"payload":…} with optional "metadata", "id" and
// "expected". Payloads are taken byte for byte. A line of EventToJson is taken as well: its version
// must be the one after "expected", and position and time are left out. kInvalid says what is
// wrong; `origin` is where the line stands.
Result<StreamAppend> AppendFromJson(std::string_view line, std::string_view origin);

}  // namespace muster
