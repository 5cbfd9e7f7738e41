#include "cli/completions.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace muster::cli {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

// A single-quoted word for bash and zsh.
std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string QuoteForFish(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

// Calls `visit(path, command)` for the program (path "") and every command below it, path " a b".
template <class Visit>
void ForEachCommand(const CommandInfo& command, const std::string& path, Visit visit) {
  visit(path, command);
  for (const CommandInfo& child : command.commands) {
    ForEachCommand(child, path + " " + child.name, visit);
  }
}

// A `case` branch per option with fixed values: PATH:OPTION, global ones in every path.
template <class Body>
std::string ValueCases(const CommandInfo& program, Body body) {
  std::string cases;
  ForEachCommand(program, "", [&](const std::string& path, const CommandInfo& command) {
    for (const OptionInfo& option : command.options) {
      if (option.positional() || option.choices.empty()) continue;
      for (const std::string& name : option.names) {
        cases += "    " + (path.empty() ? "*" : Quote(path)) + ":" + name + ") " + body(option) +
                 " ;;\n";
      }
    }
  });
  return cases;
}

// A `case` branch per command that descends into it.
std::string DescentCases(const CommandInfo& program) {
  std::string cases;
  ForEachCommand(program, "", [&](const std::string& path, const CommandInfo&) {
    if (!path.empty()) cases += "      " + Quote(path) + ") chosen=$chosen' '$word ;;\n";
  });
  return cases;
}

std::vector<OptionInfo> WithGlobals(const CommandInfo& program, const CommandInfo& command) {
  std::vector<OptionInfo> options = command.options;
  if (&command == &program) return options;
  for (const OptionInfo& option : program.options) {
    if (option.names.back() != "--help") options.push_back(option);
  }
  return options;
}

}  // namespace

std::string BashCompletions(const CommandInfo& program) {
  std::string words;
  ForEachCommand(program, "", [&](const std::string& path, const CommandInfo& command) {
    std::vector<std::string> offered;
    for (const CommandInfo& child : command.commands) offered.push_back(child.name);
    for (const OptionInfo& option : WithGlobals(program, command)) {
      if (option.positional()) {
        offered.insert(offered.end(), option.choices.begin(), option.choices.end());
      } else {
        offered.push_back(option.names.back());
      }
    }
    words += "    " + Quote(path) + ") words=" + Quote(Join(offered)) + " ;;\n";
  });
  std::string name = program.name;
  return "# bash completions of " + name + ": source <(" + name + " completions bash)\n_" + name +
         R"(() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} chosen='' words='' word
  # bash makes three words of --option=value.
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' && COMP_CWORD -gt 1 ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$chosen $word" in
)" + DescentCases(program) +
         R"(    esac
  done
  case "$chosen:$prev" in
)" +
         ValueCases(program,
                    [](const OptionInfo& option) {
                      return "COMPREPLY=($(compgen -W " + Quote(Join(option.choices)) +
                             " -- \"$cur\")); return";
                    }) +
         R"(  esac
  case "$chosen" in
)" + words +
         R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _)" +
         name + " " + name + "\n";
}

std::string ZshCompletions(const CommandInfo& program) {
  std::string offers;
  ForEachCommand(program, "", [&](const std::string& path, const CommandInfo& command) {
    std::string offered;
    auto offer = [&](const std::string& word, const std::string& description) {
      offered += " " + Quote(word + ":" + description);
    };
    for (const CommandInfo& child : command.commands) offer(child.name, child.description);
    for (const OptionInfo& option : WithGlobals(program, command)) {
      if (!option.positional()) offer(option.names.back(), option.description);
      if (!option.positional()) continue;
      for (const std::string& choice : option.choices) offer(choice, option.description);
    }
    offers += "    " + Quote(path) + ") offers=(" + offered + " ) ;;\n";
  });
  std::string name = program.name;
  return "#compdef " + name + "\n# zsh completions of " + name + ": source <(" + name +
         " completions zsh), or save it as _" + name + " in a folder of $fpath\n_" + name +
         R"(() {
  local prev=${words[CURRENT-1]} chosen='' word
  local -a offers
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$chosen $word" in
)" + DescentCases(program) +
         R"(    esac
  done
  if [[ ${words[CURRENT]} == --*=* ]]; then
    prev=${words[CURRENT]%%=*}
    compset -P '*='
  fi
  case "$chosen:$prev" in
)" +
         ValueCases(program,
                    [](const OptionInfo& option) {
                      return "compadd -- " + Join(option.choices) + "; return";
                    }) +
         R"(  esac
  case "$chosen" in
)" + offers +
         R"(  esac
  _describe ')" +
         name + R"(' offers || _files
}
# Loaded from $fpath, this file is the function's first call.
if [[ ${funcstack[1]-} == _)" +
         name + " ]]; then _" + name + "; else compdef _" + name + " " + name + "; fi\n";
}

std::string FishCompletions(const CommandInfo& program) {
  std::string name = program.name;
  std::string script =
      "# fish completions of " + name + ": " + name + " completions fish | source\n";
  ForEachCommand(program, "", [&](const std::string& path, const CommandInfo& command) {
    // Within a command: all its names were seen. Subcommands are offered until one is seen.
    std::string seen;
    for (size_t start = 1; start < path.size();) {
      size_t end = std::min(path.find(' ', start), path.size());
      seen += (seen.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
              path.substr(start, end - start);
      start = end + 1;
    }
    std::vector<std::string> children;
    for (const CommandInfo& child : command.commands) children.push_back(child.name);
    std::string none = "not __fish_seen_subcommand_from " + Join(children);
    for (const CommandInfo& child : command.commands) {
      script += "complete -c " + name + " -n " +
                QuoteForFish(seen.empty() ? none : seen + "; and " + none) + " -f -a " +
                child.name + " -d " + QuoteForFish(child.description) + "\n";
    }
    for (const OptionInfo& option : command.options) {
      script += "complete -c " + name;
      if (!seen.empty()) script += " -n " + QuoteForFish(seen);
      for (const std::string& option_name : option.names) {
        if (option.positional()) continue;
        script += option_name.starts_with("--") ? " -l " + option_name.substr(2)
                                                : " -s " + option_name.substr(1);
      }
      if (option.positional()) script += " -f";
      if (!option.positional() && !option.argument.empty())
        script += option.choices.empty() ? " -r" : " -x";
      if (!option.choices.empty()) script += " -a " + QuoteForFish(Join(option.choices));
      script += " -d " + QuoteForFish(option.description) + "\n";
    }
  });
  return script;
}

}  // namespace muster::cli
