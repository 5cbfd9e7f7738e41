#include "pipeline/flow/batch_filler.h"

#include <functional>

namespace muster::pipeline {
namespace {

// Skipped documents cost time but no memory. A batch also ends after reading this many times its
// limit, so that progress is still reported.
constexpr int64_t kReadPerKept = 16;

size_t SizeOf(const Document& document) { return document.id.size() + document.body.size(); }

// Text that no transform changed still belongs to the reader.
std::string_view InArena(std::string_view text, std::string_view original, Arena& arena) {
  if (text.empty()) return {};
  const std::less<const char*> before;
  const bool is_original = !before(text.data(), original.data()) &&
                           !before(original.data() + original.size(), text.data() + text.size());
  return is_original ? arena.Copy(text) : text;
}

}  // namespace

void ReadBatch::Clear() {
  batch.Clear();
  failed.clear();
  read = skipped = added = bytes = made_bytes = 0;
  position.clear();
  kept_bytes = 0;
  last = false;
  outcome = {};
}

BatchFiller::BatchFiller(const Pipeline& pipeline, std::string collection,
                         std::unique_ptr<Reader> reader)
    : pipeline_(pipeline), collection_(std::move(collection)), reader_(std::move(reader)) {}

void BatchFiller::Fill(ReadBatch& batch) {
  batch.Clear();
  const BatchLimits limits = pipeline_.throttle.Bounded(pipeline_.options.limits);
  const auto most_read = static_cast<int64_t>(limits.max_docs) * kReadPerKept;
  const auto most_bytes = static_cast<int64_t>(limits.max_bytes) * kReadPerKept;
  if (Status made = MakeTransforms(); !made) {
    batch.last = true;
    batch.outcome = std::move(made);
    return;
  }
  TakeHeld(batch);
  while (batch.kept() < limits.max_docs && batch.read < most_read && batch.bytes < most_bytes &&
         batch.made_bytes < most_bytes) {
    Result<bool> more = ReadOne(batch, limits);
    if (more && *more) continue;
    // Either the batch is full or the source is exhausted.
    batch.last = held_.batch.documents.empty();
    if (!more) batch.outcome = std::move(more).error();
    return;
  }
}

// All that is made of a document fails if the sink can never write one of them where it belongs.
Status BatchFiller::Transform(const Document& document, Arena& arena, TransformChain::Made& made) {
  MUSTER_TRY(transforms_->Apply(document, arena, made));
  for (const Document& one : made.documents) {
    if (!one.target.empty()) {
      MUSTER_TRY(pipeline_.sink.CheckChosen(std::string(one.target)));
    }
  }
  return {};
}

// False: the document was held back, or the source is exhausted.
Result<bool> BatchFiller::ReadOne(ReadBatch& batch, const BatchLimits& limits) {
  MUSTER_ASSIGN(const std::optional<Document> next, reader_->Next());
  if (!next) return false;
  const Document& original = *next;
  Arena& arena = batch.batch.arena;
  TransformChain::Made& made = one_.made;
  one_.bytes = static_cast<int64_t>(original.body.size());
  one_.failure.reset();
  if (!original.defect.empty()) {
    one_.failure = original.defect;
  } else if (const Status done = Transform(original, arena, made); !done) {
    one_.failure = done.error().ToString();
  }
  if (one_.failure) {
    made.documents.assign(1, original);
    made.skipped = 0;
    made.bytes = one_.bytes;
  }
  size_t bytes = 0;
  for (const Document& document : made.documents) bytes += SizeOf(document);
  if (batch.kept() > 0 && (batch.kept_bytes + bytes > limits.max_bytes ||
                           batch.kept() + made.documents.size() > limits.max_docs)) {
    for (const Document& document : made.documents) held_.batch.Add(document);
    std::swap(held_.one, one_);
    return false;
  }
  const std::string_view position =
      made.documents.empty() ? original.position : arena.Copy(original.position);
  for (Document& document : made.documents) {
    Document kept = original;
    kept.id = InArena(document.id, original.id, arena);
    kept.routing = InArena(document.routing, original.routing, arena);
    kept.body = InArena(document.body, original.body, arena);
    kept.part = document.part;
    kept.target = document.target;
    document = kept;
  }
  Add(batch, one_, position);
  return true;
}

void BatchFiller::TakeHeld(ReadBatch& batch) {
  if (held_.batch.documents.empty()) return;
  Arena& arena = batch.batch.arena;
  held_.one.made.documents.clear();
  for (Document document : held_.batch.documents) {
    for (std::string_view* text :
         {&document.id, &document.routing, &document.body, &document.target})
      *text = arena.Copy(*text);
    held_.one.made.documents.push_back(document);
  }
  Add(batch, held_.one, arena.Copy(held_.batch.documents.front().position));
  held_.batch.Clear();
}

// Texts must be in the batch's arena.
void BatchFiller::Add(ReadBatch& batch, const One& one, std::string_view position) {
  ++batch.read;
  batch.skipped += one.made.skipped;
  batch.added += one.made.added();
  batch.bytes += one.bytes;
  batch.made_bytes += one.made.bytes;
  batch.position = position;
  for (Document document : one.made.documents) {
    document.position = position;
    document.defect = {};
    batch.kept_bytes += SizeOf(document);
    if (one.failure) {
      batch.failed.push_back({document, *one.failure});
    } else {
      batch.batch.documents.push_back(document);
    }
  }
}

// Created on the thread that uses them: script engines may require it.
Status BatchFiller::MakeTransforms() {
  if (transforms_) return {};
  MUSTER_ASSIGN(transforms_, TransformChain::Of(pipeline_.transforms, collection_));
  return {};
}

}  // namespace muster::pipeline
