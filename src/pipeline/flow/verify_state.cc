#include "pipeline/flow/verify_state.h"

#include "core/escape_bytes.h"
#include "core/json.h"
#include "core/json_fields.h"

namespace muster::pipeline {
namespace {

constexpr int kFormat = 1;
constexpr size_t kMaxBytes = size_t{1} << 30;

Json DoneJson(const VerifySideState::Done& done) {
  const Partition& of = done.count.partition;
  return Json{{"collection", EscapeBytes(of.collection)},
              {"shard", of.shard},
              {"part", EscapeBytes(of.part)},
              {"begin", EscapeBytes(of.begin)},
              {"end", EscapeBytes(of.end)},
              {"follows", of.follows},
              {"mark", EscapeBytes(of.mark)},
              {"documents", done.count.documents},
              {"unreadable", done.count.unreadable},
              {"read", done.read}};
}

Json SideJson(const VerifySideState& side) {
  Json json{{"done", Json::array()}, {"buckets", Json::array()}, {"unreadable", Json::array()}};
  for (const VerifySideState::Done& one : side.done) json["done"].push_back(DoneJson(one));
  for (size_t i = 0; i < side.buckets.size(); ++i) {
    const VerifyBucket& bucket = side.buckets[i];
    if (bucket == VerifyBucket()) continue;
    json["buckets"].push_back(Json::array({i, bucket.documents, bucket.sum.low, bucket.sum.high}));
  }
  for (const VerifyDifference& one : side.unreadable) {
    json["unreadable"].push_back(
        Json::array({EscapeBytes(one.id), one.shard, EscapeBytes(one.position)}));
  }
  return json;
}

Result<std::string> BytesIn(const Json& json) {
  auto bytes = UnescapeBytes(json.get<std::string>());
  if (bytes) return *std::move(bytes);
  return Error{Code::kInvalid, "progress of a comparison: not a text of escaped bytes"};
}

// Throws what Json throws if a member is missing or of another type.
Status ReadSide(const Json& json, VerifySideState& side) {
  for (const Json& one : json.at("done")) {
    VerifySideState::Done done;
    Partition& of = done.count.partition;
    MUSTER_ASSIGN(of.collection, BytesIn(one.at("collection")));
    MUSTER_ASSIGN(of.part, BytesIn(one.at("part")));
    MUSTER_ASSIGN(of.begin, BytesIn(one.at("begin")));
    MUSTER_ASSIGN(of.end, BytesIn(one.at("end")));
    MUSTER_ASSIGN(of.mark, BytesIn(one.at("mark")));
    of.shard = one.at("shard").get<int>();
    of.follows = one.at("follows").get<bool>();
    done.count.documents = one.at("documents").get<int64_t>();
    done.count.unreadable = one.at("unreadable").get<int64_t>();
    done.read = one.at("read").get<int64_t>();
    side.done.push_back(std::move(done));
  }
  for (const Json& one : json.at("buckets")) {
    VerifyBucket& bucket = side.buckets.at(one.at(0).get<size_t>());
    bucket.documents = one.at(1).get<int64_t>();
    bucket.sum.low = one.at(2).get<uint64_t>();
    bucket.sum.high = one.at(3).get<uint64_t>();
  }
  for (const Json& one : json.at("unreadable")) {
    VerifyDifference difference;
    difference.kind = VerifyDifference::Kind::kUnreadable;
    MUSTER_ASSIGN(difference.id, BytesIn(one.at(0)));
    difference.shard = one.at(1).get<int>();
    MUSTER_ASSIGN(difference.position, BytesIn(one.at(2)));
    side.unreadable.push_back(std::move(difference));
  }
  return {};
}

}  // namespace

std::string VerifyState::ToText() const {
  return ToJsonText(Json{{"format", kFormat},
                         {"by_id", by_id},
                         {"with_ids", with_ids},
                         {"source", SideJson(source)},
                         {"target", SideJson(target)}});
}

Status VerifyState::FromText(const std::string& text, VerifyState& state) {
  const auto json = ParseJson(text, "progress of a comparison", {.bytes = kMaxBytes});
  if (!json) return json.error();
  if (NumberIn(*json, "format") != kFormat) {
    return Error{Code::kInvalid, "progress of a comparison in an unknown format"};
  }
  try {
    state.by_id = json->at("by_id").get<bool>();
    state.with_ids = json->at("with_ids").get<bool>();
    MUSTER_TRY(ReadSide(json->at("source"), state.source));
    return ReadSide(json->at("target"), state.target);
  } catch (const std::exception& problem) {
    return Error{Code::kInvalid, std::string("progress of a comparison: ") + problem.what()};
  }
}

}  // namespace muster::pipeline
