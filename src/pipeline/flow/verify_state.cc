#include "pipeline/flow/verify_state.h"

#include <utility>

#include "core/escape_bytes.h"
#include "core/json.h"
#include "core/record_fields.h"

namespace muster::pipeline {
namespace {

constexpr RecordFormat kFormat{"verify state", 1};
constexpr char kWhat[] = "the progress of a comparison";

using Done = VerifySideState::Done;

template <auto kMember>
constexpr auto kPartition = [](auto& done) -> auto& { return done.count.partition.*kMember; };
template <auto kMember>
constexpr auto kCount = [](auto& done) -> auto& { return done.count.*kMember; };

constexpr RecordFields<Done, 10> kDoneFields{{
    Required<Done, kPartition<&Partition::collection>, Escaped>("collection"),
    Required<Done, kPartition<&Partition::shard>>("shard"),
    Required<Done, kPartition<&Partition::part>, Escaped>("part"),
    Required<Done, kPartition<&Partition::begin>, Escaped>("begin"),
    Required<Done, kPartition<&Partition::end>, Escaped>("end"),
    Required<Done, kPartition<&Partition::follows>>("follows"),
    Required<Done, kPartition<&Partition::mark>, Escaped>("mark"),
    Required<Done, kCount<&VerifyReport::Count::documents>>("documents"),
    Required<Done, kCount<&VerifyReport::Count::unreadable>>("unreadable"),
    Required<Done, &Done::read>("read"),
}};

void PutDone(const VerifySideState& side, Json& json, std::string_view name) {
  json[name] = Json::array();
  for (const Done& one : side.done) json[name].push_back(Nested<kDoneFields>::Write(one));
}
void TakeDone(JsonFields& fields, VerifySideState& side, std::string_view name) {
  std::vector<Json> list;
  fields.Need(name, list);
  for (Json& one : list) {
    JsonFields members(std::move(one));
    ReadMembers(kDoneFields, members, side.done.emplace_back());
    if (!members.good()) return fields.Mistake("in 'done' " + members.mistake());
  }
}

// Those that are not empty: [number, documents, low, high]. There are thousands.
void PutBuckets(const VerifySideState& side, Json& json, std::string_view name) {
  json[name] = Json::array();
  for (size_t i = 0; i < side.buckets.size(); ++i) {
    const VerifyBucket& bucket = side.buckets[i];
    if (bucket == VerifyBucket()) continue;
    json[name].push_back(Json::array({i, bucket.documents, bucket.sum.low, bucket.sum.high}));
  }
}
void TakeBuckets(JsonFields& fields, VerifySideState& side, std::string_view name) {
  std::vector<std::vector<uint64_t>> list;
  fields.Need(name, list);
  for (const std::vector<uint64_t>& one : list) {
    if (one.size() != 4 || one[0] >= side.buckets.size() || !std::in_range<int64_t>(one[1])) {
      return fields.Mistake("its buckets are damaged");
    }
    side.buckets[one[0]] = {static_cast<int64_t>(one[1]), {one[2], one[3]}};
  }
}

// [id, shard, position]
void PutUnreadable(const VerifySideState& side, Json& json, std::string_view name) {
  json[name] = Json::array();
  for (const VerifyDifference& one : side.unreadable) {
    json[name].push_back(Json::array({EscapeBytes(one.id), one.shard, EscapeBytes(one.position)}));
  }
}
void TakeUnreadable(JsonFields& fields, VerifySideState& side, std::string_view name) {
  std::vector<std::vector<Json>> list;
  fields.Need(name, list);
  for (const std::vector<Json>& one : list) {
    VerifyDifference& added = side.unreadable.emplace_back();
    added.kind = VerifyDifference::Kind::kUnreadable;
    if (one.size() != 3) return fields.Mistake("its unreadable documents are damaged");
    JsonFields members(Json{{"id", one[0]}, {"shard", one[1]}, {"position", one[2]}});
    Escaped::Read(members, "id", added.id);
    members.Read("shard", added.shard);
    Escaped::Read(members, "position", added.position);
    if (!members.good()) return fields.Mistake("in 'unreadable' " + members.mistake());
  }
}

// [place, documents]
void PutPlaces(const VerifySideState& side, Json& json, std::string_view name) {
  if (side.places.empty()) return;
  json[name] = Json::array();
  for (const auto& [place, documents] : side.places) {
    json[name].push_back(Json::array({EscapeBytes(place), documents}));
  }
}
void TakePlaces(JsonFields& fields, VerifySideState& side, std::string_view name) {
  std::vector<std::vector<Json>> list;
  fields.Read(name, list);
  for (const std::vector<Json>& one : list) {
    if (one.size() != 2) return fields.Mistake("its places are damaged");
    JsonFields members(Json{{"place", one[0]}, {"documents", one[1]}});
    std::string place;
    Escaped::Read(members, "place", place);
    members.Read("documents", side.places[place]);
    if (!members.good()) return fields.Mistake("in 'places' " + members.mistake());
  }
}

constexpr RecordFields<VerifySideState, 4> kSideFields{{
    {"done", PutDone, TakeDone},
    {"buckets", PutBuckets, TakeBuckets},
    {"unreadable", PutUnreadable, TakeUnreadable},
    {"places", PutPlaces, TakePlaces},
}};

constexpr RecordFields<VerifyState, 4> kFields{{
    Required<VerifyState, &VerifyState::by_id>("by_id"),
    Required<VerifyState, &VerifyState::with_ids>("with_ids"),
    Required<VerifyState, &VerifyState::source, Nested<kSideFields>>("source"),
    Required<VerifyState, &VerifyState::target, Nested<kSideFields>>("target"),
}};

}  // namespace

std::string VerifyState::ToText() const {
  Json json{{kVersionField, kFormat.version}};
  WriteMembers(kFields, *this, json);
  return ToJsonText(json);
}

Status VerifyState::FromText(const std::string& text, VerifyState& state) {
  Json json = Json::parse(text, nullptr, false);
  MUSTER_TRY(CheckVersion(VersionOf(json), kFormat, kWhat));
  JsonFields members(std::move(json));
  ReadMembers(kFields, members, state);
  return members.Check(kWhat);
}

}  // namespace muster::pipeline
