#include "cli/written_url.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(WrittenUrl, HasNoParametersThatSayHowToWrite) {
  for (const auto& [sink, source] : {
           std::pair{"csv:out?columns=id,n", "csv:out"},
           {"csv:out?delimiter=tab&columns=id,n&compress=gzip", "csv:out?delimiter=tab"},
           {"jsonl:out?compress=zstd&id=_id", "jsonl:out?id=_id"},
           {"postgresql://me@db/shop?misfits=convert&schema=a#t",
            "postgresql://me@db/shop?schema=a#t"},
           {"opensearch+https://h/i?gzip=true&api_key=${file:/run/a?gzip=b&c#d}&pipeline=p",
            "opensearch+https://h/i?api_key=${file:/run/a?gzip=b&c#d}"},
           {"opensearch+http://${env:X?gzip=true}@h/i", "opensearch+http://${env:X?gzip=true}@h/i"},
           // Of these, sources know all parameters that sinks have.
           {"sqlite:a.db?misfits=convert#t", "sqlite:a.db?misfits=convert#t"},
           {"jsonl:out", "jsonl:out"},
           {"jsonl:out?", "jsonl:out?"},
           {"postgresql://db/x#t?misfits=1", "postgresql://db/x#t?misfits=1"},
           {"${", "${"},
           {"", ""},
       }) {
    EXPECT_EQ(WrittenUrl(sink), source);
  }
}

}  // namespace
}  // namespace muster::cli
