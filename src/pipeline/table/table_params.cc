#include "pipeline/table/table_params.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace muster::pipeline {

std::vector<std::string> KeyParam(const Url& url) {
  const std::string value = url.Param("key").value_or("");
  std::vector<std::string> names;
  for (std::string_view text = value; !text.empty();) {
    const size_t end = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

Result<int64_t> PartitionsParam(const Url& url) {
  constexpr int64_t kMax = 10'000;
  const auto text = url.Param("partitions");
  if (!text) return 0;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || number < 1 || number > kMax) {
    return Error{Code::kInvalid, "source URL: partitions=" + *text,
                 "write a number from 1 to 10000"};
  }
  return number;
}

Result<Misfits> MisfitsParam(const Url& url, std::string_view what) {
  const std::string misfits = url.Param("misfits").value_or("refuse");
  if (misfits == "refuse") return Misfits::kRefuse;
  if (misfits == "convert") return Misfits::kConvert;
  return Error{Code::kInvalid, std::string(what) + ": misfits=" + misfits,
               "write misfits=refuse or misfits=convert"};
}

}  // namespace muster::pipeline
