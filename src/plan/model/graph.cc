#include "plan/model/graph.h"

#include <algorithm>

#include "plan/model/order.h"

namespace muster::plan {
namespace {

struct Edge {
  size_t from = 0;
  size_t to = 0;
};

// The input of every picture.
struct Layout {
  std::vector<Edge> edges;
  std::vector<size_t> level;                // of each rank: the longest path to it
  std::vector<std::vector<size_t>> levels;  // the ranks of each
};

Layout MakeLayout(const Plan& plan) {
  const Order order(plan);
  Layout layout;
  layout.level.resize(plan.ranks.size());
  for (size_t to = 0; to < plan.ranks.size(); ++to) {
    std::vector<size_t> needs;
    for (const int64_t number : plan.ranks[to].needs) needs.push_back(*plan.FindRank(number));
    for (const size_t from : needs) {
      layout.level[to] = std::max(layout.level[to], layout.level[from] + 1);
      const bool follows = std::any_of(needs.begin(), needs.end(),
                                       [&](size_t other) { return order.IsBefore(from, other); });
      if (!follows) layout.edges.push_back({from, to});
    }
    layout.levels.resize(std::max(layout.levels.size(), layout.level[to] + 1));
    layout.levels[layout.level[to]].push_back(to);
  }
  return layout;
}

std::string Title(const Rank& rank) {
  return std::to_string(rank.number) + (rank.name.empty() ? "" : " " + rank.name);
}

std::string Counts(const Plan& plan, const Rank& rank) {
  if (rank.external) return "done elsewhere";
  int64_t dpu = 0;
  for (const Reference& script : rank.transform) dpu += plan.scripts.at(script.name).dpu;
  return std::to_string(rank.extract.size()) + " objects, " +
         std::to_string(rank.transform.size()) + " scripts, " + std::to_string(dpu) + " DPU";
}

// A text within quotes, for Graphviz.
std::string DotText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string XmlText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML allows no other control characters.
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

}  // namespace

std::string DrawDot(const Plan& plan) {
  std::string out = "digraph \"" + DotText(plan.name) + "\" {\n  node [shape=box];\n";
  for (const Rank& rank : plan.ranks) {
    out += "  r" + std::to_string(rank.number) + " [label=\"" + DotText(Title(rank)) + "\\n" +
           Counts(plan, rank) + "\"" + (rank.external ? ", style=dashed" : "") + "];\n";
  }
  for (const Edge& edge : MakeLayout(plan).edges) {
    out += "  r" + std::to_string(plan.ranks[edge.from].number) + " -> r" +
           std::to_string(plan.ranks[edge.to].number) + ";\n";
  }
  return out + "}\n";
}

std::string DrawSvg(const Plan& plan) {
  constexpr size_t kWidth = 260;
  constexpr size_t kHeight = 48;
  constexpr size_t kGapX = 24;
  constexpr size_t kGapY = 32;
  const Layout layout = MakeLayout(plan);
  size_t widest = 1;
  for (const auto& ranks : layout.levels) widest = std::max(widest, ranks.size());
  const size_t width = widest * (kWidth + kGapX) + kGapX;
  const size_t height = layout.levels.size() * (kHeight + kGapY) + kGapY;
  std::vector<std::pair<size_t, size_t>> corner(plan.ranks.size());
  for (size_t level = 0; level < layout.levels.size(); ++level) {
    const auto& ranks = layout.levels[level];
    const size_t left = (width - ranks.size() * (kWidth + kGapX) + kGapX) / 2;
    for (size_t i = 0; i < ranks.size(); ++i)
      corner[ranks[i]] = {left + i * (kWidth + kGapX), kGapY + level * (kHeight + kGapY)};
  }
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) +
                    "\" height=\"" + std::to_string(height) +
                    "\" font-family=\"sans-serif\" font-size=\"13\">\n<title>" +
                    XmlText(plan.name) + "</title>\n";
  for (const Edge& edge : layout.edges) {
    const auto& [x1, y1] = corner[edge.from];
    const auto& [x2, y2] = corner[edge.to];
    out += "<line x1=\"" + std::to_string(x1 + kWidth / 2) + "\" y1=\"" +
           std::to_string(y1 + kHeight) + "\" x2=\"" + std::to_string(x2 + kWidth / 2) +
           "\" y2=\"" + std::to_string(y2) + "\" stroke=\"#888\"/>\n";
  }
  for (size_t i = 0; i < plan.ranks.size(); ++i) {
    const Rank& rank = plan.ranks[i];
    const auto& [x, y] = corner[i];
    const std::string left = std::to_string(x);
    const std::string text_left = std::to_string(x + 10);
    out += "<g><rect x=\"" + left + "\" y=\"" + std::to_string(y) + "\" width=\"" +
           std::to_string(kWidth) + "\" height=\"" + std::to_string(kHeight) +
           "\" rx=\"6\" fill=\"" + (rank.external ? "#eee" : "#e8f0fe") +
           "\" stroke=\"#456\"/><text x=\"" + text_left + "\" y=\"" + std::to_string(y + 20) +
           "\" font-weight=\"bold\">" + XmlText(Title(rank)) + "</text><text x=\"" + text_left +
           "\" y=\"" + std::to_string(y + 38) + "\" fill=\"#555\">" + XmlText(Counts(plan, rank)) +
           "</text></g>\n";
  }
  return out + "</svg>\n";
}

std::string DrawText(const Plan& plan) {
  const Layout layout = MakeLayout(plan);
  std::string out;
  for (size_t level = 0; level < layout.levels.size(); ++level) {
    const auto& ranks = layout.levels[level];
    if (level > 0) out += "  │\n";
    for (size_t i = 0; i < ranks.size(); ++i) {
      const Rank& rank = plan.ranks[ranks[i]];
      const char* sign = ranks.size() == 1      ? "──"
                         : i == 0               ? "┬─"
                         : i + 1 < ranks.size() ? "├─"
                                                : "└─";
      out += std::string("  ") + sign + " " + Title(rank) + "  (" + Counts(plan, rank) + ")";
      // Needing the previous rank is the default, so it is not shown.
      const bool plain = level > 0 && layout.levels[level - 1].size() == 1 && ranks.size() == 1 &&
                         rank.needs.size() == 1;
      if (!plain && !rank.needs.empty()) {
        out += "  needs";
        for (const int64_t need : rank.needs) out += " " + std::to_string(need);
      }
      out += "\n";
    }
  }
  return out;
}

}  // namespace muster::plan
