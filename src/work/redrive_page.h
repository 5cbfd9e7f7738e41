// What one redrive writes: pages of letters, as items with a source and a cursor of their own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/escape_bytes.h"
#include "core/number.h"
#include "pipeline/pipeline.h"
#include "work/records.h"
#include "work/redrive_lease.h"
#include "work/settled_letters.h"

namespace muster::work {

// Transforms documents only if they have not been, and maps them to their targets.
class RedrivePlan final : public pipeline::TransformPlanWrapper {
 public:
  RedrivePlan(const pipeline::TransformPlan& transforms, const pipeline::LetterGroup& group)
      : TransformPlanWrapper(transforms), group_(group) {}

  Result<std::vector<std::unique_ptr<pipeline::Transform>>> Make(
      const std::string& collection) const override {
    if (!group_.transformed) return TransformPlanWrapper::Make(collection);
    return std::vector<std::unique_ptr<pipeline::Transform>>();
  }
  std::string TargetName(const std::string& collection) const override {
    return group_.target.empty() ? TransformPlanWrapper::TargetName(collection) : group_.target;
  }
  bool EditsDocuments() const override {
    return !group_.transformed && TransformPlanWrapper::EditsDocuments();
  }
  bool ChoosesTargets() const override {
    return !group_.transformed && TransformPlanWrapper::ChoosesTargets();
  }
  // A letter has no metadata of its collection: only the name counts.
  Result<pipeline::Collection> Target(const pipeline::Collection& collection) const override {
    return pipeline::Collection{TargetName(collection.name), collection.metadata};
  }

 private:
  const pipeline::LetterGroup& group_;
};

inline std::string FormerNote(const std::string& run, int64_t letters) {
  return std::to_string(letters) + (letters == 1 ? " letter is" : " letters are") +
         " left out: from before run '" + run +
         "' was started over, which migrates their documents again";
}

inline Error LostRecords(const std::string& run) {
  return Error{Code::kIncompatible,
               "the sink has redriven letters of run '" + run +
                   "' that the store does not know of: it was restored, or has lost commits",
               "redrive with --all: rows are replaced by key; a table without a key gets them "
               "again, so remove them first"};
}

inline Error WrittenElsewhere(const std::string& record) {
  return Error{
      Code::kIncompatible,
      "the sink has redriven letters of this migration that " + record +
          " does not know of: from a copy or a part of the file, or under another URL",
      "redrive the file that was redriven before; or redrive with --all: rows are replaced "
      "by key, but a table without a key gets those again that it has"};
}

// Letters in one page. More make fewer records change, fewer keep the page's record small: it is
// written again for every letter that fails again.
constexpr size_t kPageLetters = 2'000;
constexpr size_t kPageItemBytes = 200 * 1024;  // of the names of their items

// The item of all redrives of a run in the sink.
inline constexpr char kRedriveItem[] = "redrive";

inline std::string PositionOf(const pipeline::LetterPlace& letter) {
  return std::to_string(letter.identity);
}

// Letters of a page that are positioned by their identities: those are the same in every file, and
// a sink may derive a document's id from its position.
class PageSource final : public pipeline::SourceWrapper {
 public:
  PageSource(pipeline::Source& source, const std::vector<pipeline::LetterPlace>& letters)
      : SourceWrapper(source), letters_(letters) {}

  // Always from the first letter: a page is never continued.
  Result<std::unique_ptr<pipeline::Reader>> Read(const pipeline::Partition& partition,
                                                 const std::string& /*position*/,
                                                 std::stop_token stop) override {
    MUSTER_ASSIGN(auto reader, inner().Read(partition, "", std::move(stop)));
    return std::make_unique<PageReader>(std::move(reader), letters_);
  }

 private:
  class PageReader final : public pipeline::ReaderWrapper {
   public:
    PageReader(std::unique_ptr<Reader> inner, const std::vector<pipeline::LetterPlace>& letters)
        : ReaderWrapper(std::move(inner)), letters_(letters) {}

    Result<std::optional<pipeline::Document>> Next() override {
      MUSTER_ASSIGN(auto document, ReaderWrapper::Next());
      if (!document) return document;
      position_ = PositionOf(letters_.at(next_++));
      document->position = position_;
      return document;
    }
    // The file's positions are not those of the letters.
    Result<std::optional<std::string>> Split() override { return std::nullopt; }

   private:
    const std::vector<pipeline::LetterPlace>& letters_;
    size_t next_ = 0;
    std::string position_;
  };

  const std::vector<pipeline::LetterPlace>& letters_;
};

// Keeps the lease while a page is written. A redrive has no observer.
class PageCursor final : public pipeline::WorkItemCursor {
 public:
  // `lease` may be null.
  PageCursor(RedriveLease* lease, std::stop_token stop) : lease_(lease), stop_(std::move(stop)) {}
  Status Advance(pipeline::Progress& /*progress*/, pipeline::Writer& /*writer*/,
                 pipeline::Rest& /*rest*/) override {
    return lease_ == nullptr ? Status() : lease_->KeepUp();
  }
  pipeline::Patience NextPatience() override {
    if (lease_ == nullptr) return {.stop = stop_};
    return {.deadline = lease_->WriteDeadline(), .stop = stop_};
  }

 private:
  RedriveLease* const lease_;
  const std::stop_token stop_;
};

// Stores documents that fail again, as letters of the original failures, and tracks which those
// are: also in the lease, before the sink commits without them. If transforms now make several
// documents of a letter's, those that fail have letters of their own, and that letter is settled:
// taking it again would write the others twice. Used by one thread.
class AgainLetters final : public pipeline::DeadLetters {
 public:
  // Of a run's incarnation that started at `since_ms`. `lease` may be null.
  AgainLetters(pipeline::DeadLetters& letters, const std::vector<pipeline::LetterPlace>& taken,
               int64_t since_ms, RedriveLease* lease)
      : letters_(letters), taken_(taken), since_ms_(since_ms), lease_(lease) {
    for (size_t i = 0; i < taken.size(); ++i) indices_[PositionOf(taken[i])] = i;
  }

  Status Add(const pipeline::DeadLetter& letter) override { return WithHint(AddAgain(letter)); }

  Status Flush() override {
    MUSTER_TRY(WithHint(letters_.Flush()));
    if (lease_ == nullptr || lease_->page().failed.size() == failed_.size()) return {};
    RedrivePageBody page = lease_->page();
    page.failed.assign(failed_.begin(), failed_.end());
    return lease_->Save(std::move(page));
  }

 private:
  // The file has a fixed place.
  static Status WithHint(Status done) {
    if (done) return done;
    Error error = done.error();
    error.hint = "free some space, or copy the dead letters to another disk and redrive the copy";
    return error;
  }

  Status AddAgain(const pipeline::DeadLetter& letter) {
    const size_t index = indices_.at(std::string(letter.document.position));
    const pipeline::LetterPlace& place = taken_[index];
    pipeline::Document document = letter.document;
    const auto position = UnescapeBytes(place.position);
    if (position) document.position = *position;
    MUSTER_TRY(letters_.Add({.collection = letter.collection,
                             .target = letter.target,
                             .item = place.item,
                             .document = document,
                             .reason = letter.reason,
                             .transformed = letter.transformed,
                             .since_ms = since_ms_,
                             .follows = place.follows}));
    if (document.part == place.part) failed_.insert(index);
    return {};
  }

  pipeline::DeadLetters& letters_;
  const std::vector<pipeline::LetterPlace>& taken_;
  const int64_t since_ms_;
  RedriveLease* const lease_;
  std::map<std::string, size_t> indices_;  // by position
  std::set<size_t> failed_;
};

// The first `count` letters of a page that did not fail again.
inline std::vector<SettledLetter> SettledOf(const RedrivePageBody& page, int64_t count) {
  const std::set<int64_t> failed(page.failed.begin(), page.failed.end());
  std::vector<SettledLetter> settled;
  for (int64_t i = 0; i < count && i < static_cast<int64_t>(page.letters.size()); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto item = static_cast<size_t>(page.item_of[at]);
    if (!failed.contains(i)) settled.push_back({page.letters[at], page.items[item]});
  }
  return settled;
}

// The page that a sink's progress is about; 0: none.
inline int64_t PageOf(const pipeline::Progress& progress) {
  return ParseNumber<int64_t>(progress.end).value_or(0);
}

// Letters that are written together, as one item or a part of it: of one group and collection, in
// line order.
struct Page {
  std::string collection;
  bool replaces = false;  // what the run wrote before of the same documents
  std::vector<pipeline::LetterPlace> letters = {};
};

inline std::vector<Page> PagesOf(const std::vector<pipeline::LetterPlace>& letters,
                                 const std::function<bool(const pipeline::LetterPlace&)>& replaces,
                                 size_t most) {
  struct Open {
    Page page;
    std::set<std::string> items = {};
    size_t item_bytes = 0;
  };
  std::map<std::pair<std::string, bool>, Open> open;
  std::vector<Page> pages;
  for (const pipeline::LetterPlace& letter : letters) {
    const bool again = replaces(letter);
    const auto found =
        open.try_emplace({letter.collection, again}, Open{.page = {letter.collection, again}});
    Open& one = found.first->second;
    if (one.items.insert(letter.item).second) one.item_bytes += letter.item.size() + 3;
    one.page.letters.push_back(letter);
    if (one.page.letters.size() < most && (most > kPageLetters || one.item_bytes < kPageItemBytes))
      continue;
    pages.push_back(std::move(one.page));
    one = Open{.page = {letter.collection, again}};
  }
  for (auto& [key, one] : open) {
    if (!one.page.letters.empty()) pages.push_back(std::move(one.page));
  }
  return pages;
}

}  // namespace muster::work
