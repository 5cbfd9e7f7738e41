#pragma once

#include <string>
#include <string_view>

#include "muster/events.h"
#include "muster/result.h"

namespace muster::events {

// An event as one line of JSON, without the newline:
//   {"position":1,"stream":"order-1","version":1,"type":"Placed","id":"…","time_ms":…,
//    "payload":{…},"metadata":{…}}
// Payload and metadata are verbatim if they are single-line JSON, otherwise strings under
// payload_text or metadata_text.
std::string EventToJson(const Event& event);

// Parses an append from {"stream":…,"type":…,"payload":…} with optional "metadata", "id" and
// "expected". Payloads are kept byte for byte. Also accepts lines from EventToJson: the version
// must be the one after "expected"; position and time are ignored. kInvalid says what is wrong;
// `origin` is the line's location.
Result<StreamAppend> AppendFromJson(std::string_view line, std::string_view origin);

}  // namespace muster::events
