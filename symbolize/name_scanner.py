"""Takes a readable C++, Rust or Go function name apart into its canonical path."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[<>()\[\]{}' ]|\boperator(?!\w)|\$_\d+")
_BRACKETS = re.compile(r"[<>()\[\]{}]|\boperator(?=[<>(\[-])")
_OPERATORS = re.compile(
    r"\(\)|\[\]|<=>|->\*|<<=|>>=|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|\*=|/=|%=|\^=|&=|\|=|[-+*/%^&|~!=<>,]"
)
_WORD_OPERATORS = re.compile(r' (?:new|delete)(?:\[\])?(?!\w)| co_await(?!\w)|"" ?\w+')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
# What may follow the parameter list of the last component of a C++ name.
_QUALIFIERS = re.compile(r"(?: ?(?:const|volatile|&&?|noexcept|restrict|requires .*)|\[abi:\w+\])*$", re.DOTALL)
# The same of an enclosing function.
_INNER_QUALIFIERS = re.compile(r"(?: (?:const|volatile)| ?&&?)*")
_POINTER = re.compile(r"\((?:[\w:]+::)?[*&]+(?: ?const\b)? ?")
_LAMBDA_NAME = re.compile(r"'(lambda|unnamed|block-literal)\d*'")
_LIFETIME = re.compile(r"'\w+ ")
_ANONYMOUS_NAMESPACE = "(anonymous namespace)"
# Nested types inside types; deeper text is kept as it stands.
_DEEPEST_NESTING = 24
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
# Every bracket that nothing closes is looked for to the end of the text: what is long must be balanced, and not without end.
_LONG, _LONGEST = 2_000, 20_000


def canonical_path(text: str) -> tuple[str, str]:
    """(key, trait key or "") of a readable name without suffixes.  Unbalanced text, and text of more than 20,000 characters,
    comes back as it is."""
    if len(text) > _LONG and (len(text) > _LONGEST or any(text.count(one) != text.count(other) for one, other in _PAIRS)):
        return text, ""
    scanner = _Scanner(text, 0)
    return scanner.run(), scanner.trait_key


class _Scanner:
    """One pass over a name.  ``_path`` holds the finished parts of the path; ``_declarator`` the length that they had at the
    last blank outside of brackets, where a return type would end."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self._position = 0
        self._path = ""
        self._declarator = 0
        self.trait_key = ""

    def run(self) -> str:
        text = self._text
        if self._depth > _DEEPEST_NESTING:
            return text
        steps = {"<": self._angle, "(": self._parenthesis, "[": self._square, "{": self._brace, "'": self._quote}
        while self._position < len(text):
            found = _SPECIAL.search(text, self._position)
            if found is None:
                self._path += text[self._position :]
                break
            self._path += text[self._position : found.start()]
            self._position = found.start()
            token = found[0]
            if token == "operator":
                self._operator()
            elif token in steps:
                if steps[token]():
                    return self._path
            elif token.startswith("$_"):
                self._replace(found.end(), "{lambda}")
            elif token == " ":
                self._replace(self._position + 1, " ")
                self._declarator = len(self._path)
            else:
                self._replace(self._position + 1, token)
        return self._path

    def _replace(self, end: int, by: str) -> None:
        self._path += by
        self._position = end

    def _operator(self) -> None:
        """Operator names hold brackets and blanks that mean nothing; a conversion operator holds a type."""
        start = self._position + len("operator")
        if self._path[self._declarator :] and not self._path.endswith("::"):
            self._replace(start, "operator")
            return
        word = _WORD_OPERATORS.match(self._text, start)
        if word is not None:
            self._replace(word.end(), "operator" + word[0])
            return
        symbol = _operator_symbol(self._text, start)
        if not symbol:
            self._conversion(start)
            return
        self._replace(start + len(symbol), "operator" + symbol)
        if self._text.startswith(" <", self._position):
            self._position += 1

    def _conversion(self, start: int) -> None:
        end = start
        while end < len(self._text) and self._text[end] != "(":
            closing = _matching(self._text, end) if self._text[end] == "<" else end + 1
            end = closing if closing > 0 else end + 1
        target = _Scanner(self._text[start:end].strip(), self._depth + 1).run()
        self._replace(end, f"operator {target}" if target else "operator")

    def _angle(self) -> bool:
        end = _matching(self._text, self._position)
        if end < 0:
            self._replace(self._position + 1, "<")
            return False
        inner = self._text[self._position + 1 : end - 1]
        local = self._path[self._declarator :]
        if inner.startswith("lambda("):
            self._replace(end, "{lambda}")
        elif (local.endswith("::") and inner.startswith("impl ")) or (not local and self._text.startswith("::", end)):
            self._qualified_self(inner, end)
        elif local and not local.endswith(" "):
            self._path = self._path.removesuffix("::")
            self._position = end
        else:
            self._replace(end, f"<{inner}>")
        return False

    def _qualified_self(self, inner: str, end: int) -> None:
        """``<T>``, ``<T as Trait>``, ``<impl T>``, ``<impl Trait for T>``: the path in front, if any, only says where the
        implementation stands."""
        trait, kind = "", inner
        if inner.startswith("impl "):
            at = _outside(inner, " for ")
            kind = inner[at + 5 :] if at >= 0 else inner[5:]
            trait = inner[5:at] if at >= 0 else ""
        else:
            at = _outside(inner, " as ")
            if at >= 0:
                kind, trait = inner[:at], inner[at + 4 :]
        self._path = self._path[: self._declarator] + self._type(kind)
        self._position = end
        if trait and not self.trait_key:
            rest = _Scanner("x" + self._text[end:], self._depth + 1).run()[1:]
            self.trait_key = _Scanner(trait, self._depth + 1).run() + rest

    def _type(self, text: str) -> str:
        """The name that stands for a Rust type: references lead to what they refer to, arguments are left out."""
        text = text.strip()
        while text.startswith("&"):
            text = _LIFETIME.sub("", text[1:].lstrip(), count=1).removeprefix("mut ")
        if text.startswith(("*const ", "*mut ")):
            return text.split(" ", 1)[0]
        if text.startswith("["):
            return "[_]"
        if text.startswith("("):
            return "(_)"
        if text.startswith("dyn "):
            bound = text[4:]
            plus = _outside(bound, "+")
            return "dyn " + _Scanner((bound[:plus] if plus >= 0 else bound).strip(), self._depth + 1).run()
        if re.match(r"(?:for<.*?> )?(?:unsafe )?(?:extern .*? )?fn\(", text):
            return "fn"
        return _Scanner(text, self._depth + 1).run()

    def _parenthesis(self) -> bool:
        """True when the name ends with this parameter list."""
        text, start = self._text, self._position
        if text.startswith(_ANONYMOUS_NAMESPACE, start):
            self._replace(start + len(_ANONYMOUS_NAMESPACE), _ANONYMOUS_NAMESPACE)
            return False
        end = _matching(text, start)
        local = self._path[self._declarator :]
        if end < 0:
            self._replace(start + 1, "(")
        elif local == "decltype" or (not local and self._path.endswith("decltype ")):
            self._position = end
        elif local and not local.endswith((".", "::")):
            return self._parameters(local, end)
        elif not local and _POINTER.match(text, start):
            return self._pointer_to_function(end)
        else:
            self._replace(end, text[start:end])
        return False

    def _parameters(self, local: str, end: int) -> bool:
        if self._text.startswith("::", end):
            # The parameters of a function around a local class or a lambda.
            self._path, self._declarator, self._position = local, 0, end
            return False
        if _QUALIFIERS.match(self._text, end) is not None:
            self._path = local
            return True
        if self._text.startswith("::", _behind_qualifiers(self._text, end)):
            self._path, self._declarator, self._position = local, 0, _behind_qualifiers(self._text, end)
            return False
        self._replace(end, self._text[self._position : end])
        return False

    def _pointer_to_function(self, end: int) -> bool:
        """``result (*name(parameters))(parameters of the result)``."""
        pointer = _POINTER.match(self._text, self._position)
        inner = self._text[pointer.end() if pointer else self._position + 1 : end - 1]
        if inner.endswith(")") and self._text.startswith(("(", "["), end):
            self._path = _Scanner(inner, self._depth + 1).run()
            return True
        self._replace(end, self._text[self._position : end])
        return False

    def _square(self) -> bool:
        text, start = self._text, self._position
        end = _matching(text, start)
        local = self._path[self._declarator :]
        if end > 0 and text.startswith("[abi:", start):
            self._position = end
        elif end > 0 and local and (local[-1].isalnum() or local[-1] == "_"):
            # A crate's disambiguator, or the type arguments of a generic Go function.
            self._position = end
        else:
            self._replace(start + 1, "[")
        return False

    def _brace(self) -> bool:
        """``{{closure}}``, ``{closure#0}``, ``{lambda(int)#1}``, ``{shim:vtable#0}``, ``{unnamed type#1}``."""
        end = _matching(self._text, self._position)
        if end < 0:
            self._replace(self._position + 1, "{")
            return False
        inner = self._text[self._position + 1 : end - 1]
        while inner.startswith("{") and inner.endswith("}") and len(inner) > 1:
            inner = inner[1:-1]
        if inner == "anonymous":
            self._replace(end, _ANONYMOUS_NAMESPACE)
            return False
        name = re.split(r"[(#:]", inner, maxsplit=1)[0]
        name = {"vtable.shim": "shim", "unnamed type": "unnamed", "closure_env": "closure"}.get(name, name)
        separator = "::" if name == "shim" and self._path and not self._path.endswith(":") else ""
        self._replace(end, f"{separator}{{{name or inner}}}")
        return False

    def _quote(self) -> bool:
        """LLVM's ``'lambda0'(int)`` and ``'unnamed'``."""
        found = _LAMBDA_NAME.match(self._text, self._position)
        if found is None:
            self._replace(self._position + 1, "'")
            return False
        end = found.end()
        if self._text.startswith("(", end):
            end = max(_matching(self._text, end), end)
        self._replace(end, f"{{{found[1]}}}")
        return False


def _operator_symbol(text: str, start: int) -> str:
    """The longest operator symbol at ``start`` behind which stands what can follow an operator, "" when there is none:
    ``operator<<A>`` is ``operator<`` with an argument."""
    found = _OPERATORS.match(text, start)
    symbol = found[0] if found is not None else ""
    while symbol:
        behind = text[start + len(symbol) : start + len(symbol) + 1]
        if behind in ("", "(", "<", " ", "[", ":") and _OPERATORS.fullmatch(symbol):
            return symbol
        symbol = symbol[:-1]
    return ""


def _behind_qualifiers(text: str, position: int) -> int:
    found = _INNER_QUALIFIERS.match(text, position)
    return found.end() if found is not None else position


def _matching(text: str, start: int) -> int:
    """Position behind the bracket that closes the one at ``start``, -1 when there is none.  Inside round brackets "<" and
    ">" may be comparisons, so only round brackets count there; the ">" of "->" closes nothing."""
    opening = text[start]
    if opening == "(":
        return _matching_parenthesis(text, start)
    if opening == "<":
        end = _matching_angle(text, start)
        if end > 0 and not _is_troubled(text[start + 1 : end]):
            return end
    stack = [_CLOSING[opening]]
    position = start + 1
    while stack:
        found = _BRACKETS.search(text, position)
        if found is None:
            return -1
        bracket, position = found[0], found.end()
        if bracket == "operator":
            position += len(_operator_symbol(text, position))
        elif bracket == "(":
            position = _matching_parenthesis(text, found.start())
            if position < 0:
                return -1
        elif bracket in _CLOSING:
            stack.append(_CLOSING[bracket])
        elif bracket == ">" and text[found.start() - 1] in "-=":
            continue
        elif stack.pop() != bracket:
            return -1
    return position


def _is_troubled(text: str) -> bool:
    """What makes angle brackets more than nested pairs.  Searching for one text after the other is quicker than a pattern."""
    return (
        "(" in text
        or ")" in text
        or "[" in text
        or "{" in text
        or "->" in text
        or "=>" in text
        or "operator" in text
        or "]" in text
        or "}" in text
    )


def _matching_angle(text: str, start: int) -> int:
    """``_matching`` as if only angle brackets meant anything."""
    depth, position = 1, start + 1
    while depth:
        end = text.find(">", position) + 1
        if not end:
            return -1
        depth += text.count("<", position, end) - 1
        position = end
    return position


def _matching_parenthesis(text: str, start: int) -> int:
    depth, position = 1, start + 1
    while depth:
        end = text.find(")", position) + 1
        if not end:
            return -1
        depth += text.count("(", position, end) - 1
        position = end
    return position


def _outside(text: str, wanted: str) -> int:
    """Position of ``wanted`` outside of all brackets, -1 when it is not there."""
    position = 0
    while position < len(text):
        if text.startswith(wanted, position):
            return position
        if text[position] in _CLOSING:
            end = _matching(text, position)
            position = end if end > 0 else position + 1
        else:
            position += 1
    return -1
