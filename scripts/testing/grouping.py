"""Which C++ sources can be compiled as if they were one file.

Compiling many sources at once reads their headers, and instantiates their templates, once. A private
declaration of one source must not appear in another one of its group: it would be declared twice, or hide
another declaration of that name. clang-format's layout makes declarations easy to find:
those in a namespace start at the beginning of a line."""

import re

NAMESPACE = re.compile(r"^namespace (\w[\w:]*) \{$", re.MULTILINE)
UNNAMED_NAMESPACE = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
TYPE = re.compile(r"^(?:template <.*> )?(?:class|struct|union|enum(?: class)?) (\w+)", re.MULTILINE)
# Up to what follows a name: its parameters, value, body or end.
OTHER = re.compile(r"^(?!(?:using|class|struct|union|enum|template|namespace|public|private) )"
                   r"[A-Za-z_\[].*?\b(\w+)(?=\(| =\s|\{| \{|;|\[)", re.MULTILINE)
INTERNAL = re.compile(r"^(?:static|constexpr|const) .*?\b(\w+)(?=\(| =\s|\{| \{|;|\[)", re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)", re.MULTILINE)
# GoogleTest joins the two names.
TEST = re.compile(r"^\w*TEST\w*\((\w+),\s*(\w+)", re.MULTILINE)
ALIAS = re.compile(r"^(?:using|namespace) (\w+) = (.*);$", re.MULTILINE)
USING = re.compile(r"^using ((?!std::)[\w:]+::(\w+));$", re.MULTILINE)


class Names:
    """The names in a source: all of them, and its private declarations."""

    def __init__(self, text):
        self.words = set(WORD.findall(text))
        self.namespaces = set(NAMESPACE.findall(text)) or {""}
        self.macros = set(MACRO.findall(text))
        # Two sources may have the same alias for the same thing.
        self.aliases = {*ALIAS.findall(text), *((name, meaning) for meaning, name in USING.findall(text))}
        unnamed = "".join(UNNAMED_NAMESPACE.findall(text))
        self.declared = {*TYPE.findall(unnamed), *OTHER.findall(unnamed), *INTERNAL.findall(text)}
        # Beside GoogleTest's `testing`, tests/support has muster::testing.
        self.has_helpers = '#include "support/' in text
        tests = {"_".join(pair) for pair in TEST.findall(text)}
        self.declared |= tests
        self.words |= tests

    def concern(self, other):
        """Whether anything that this source declares could be meant by a name in the other one."""
        if self.macros & other.words:
            return True
        if self.has_helpers and not other.has_helpers and "testing" in other.words:
            return True
        if not any(self._encloses(mine, theirs) for mine in self.namespaces for theirs in other.namespaces):
            return False
        return bool(self.declared & other.words) or any(
            name in other.words for name, _ in self.aliases - other.aliases)

    @staticmethod
    def _encloses(outer, inner):
        return not outer or inner == outer or inner.startswith(f"{outer}::")

    def collide(self, other):
        return self.concern(other) or other.concern(self)


def group(items, names_of, most, is_even=False):
    """Lists of at most `most` items whose names do not collide. Each item goes to the first list that can
    take it or, to make them of about the same length, to the shortest."""
    groups = []
    for item in items:
        names = names_of(item)
        fitting = [each for each in groups if len(each) < most
                   and not any(names.collide(others) for _, others in each)]
        if not fitting:
            groups.append([])
            fitting = groups[-1:]
        (min(fitting, key=len) if is_even else fitting[0]).append((item, names))
    return [[item for item, _ in each] for each in groups]
