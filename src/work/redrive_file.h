#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "pipeline/pipeline.h"
#include "work/records.h"
#include "work/settled_letters.h"

namespace muster::work {

// Where redrives are recorded of letters whose run is not in the store, as those of a standalone
// migration: FILE.redriven, a SQLite store beside the letters. It is also that of FILE.again. What
// one sink has got says nothing about another one.
//
// A copy of the letters has a record of its own, and so has another URL of the same sink. All of
// them have the same name in a sink that keeps progress, which so refuses what it has already.
// Used by one thread; `env` must outlive it.
class RedriveFile {
 public:
  struct Entry {
    std::string name;   // of its records
    std::string fence;  // the run's name in the sink, however its URL is written
    store::Store& store;
    RunBody run;
    SettledLetters settled;
  };

  // `letters` is a file, `sink` a URL without secrets, and without what is no part of its identity.
  RedriveFile(const std::string& letters, std::string sink, Env& env);

  const std::string& path() const { return path_; }

  // The entry of these letters, loaded; null: nothing was redriven. Creates nothing.
  Result<Entry*> Find(const pipeline::LetterGroup& group);

  // The same, created if needed.
  Result<Entry*> Make(const pipeline::LetterGroup& group);

 private:
  std::string KeyOf(const pipeline::LetterGroup& group) const;
  Status Open();
  Result<Entry*> Load(const pipeline::LetterGroup& group, const std::string& body);

  const std::string path_;
  const std::string sink_;
  Env& env_;
  std::unique_ptr<store::Store> store_;
  std::map<std::pair<std::string, int64_t>, Entry> entries_;  // by run and start
};

}  // namespace muster::work
