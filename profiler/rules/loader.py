"""Rule files (TOML) to a ``RuleSet``; whatever is wrong with one is told in one line with file and line number.

A pattern is a regular expression or a list of them, of which one must be found.

A file holds ``[[rule]]`` tables and, optionally, ``extends = ["common"]``: the named built-in sets are tried after all rule
sets that were asked for, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from profiler.errors import UsageError
from profiler.model.analysis_choices import DEFAULT_RULE_SETS
from profiler.model.category import OTHER, Rule, RuleSet
from profiler.model.quick_dataclass import dataclass
from profiler.model.rule_pattern import RulePattern
from profiler.rules.repetition import may_explode
from profiler.rules.rule_text import key_line, rule_lines
from profiler.toml.toml_document import TomlError, toml_document

_PATTERN_KEYS = ("function", "file", "dso", "under")
_FLAG_KEYS = ("transparent", "passthrough", "fallback")
_RULE_KEYS = ("category", "group", *_PATTERN_KEYS, *_FLAG_KEYS)
_TOP_KEYS = ("extends", "rule")
NAMES_OF_SUMS = ("total", "(rest)")
_BUILTIN_DIRECTORY = Path(__file__).parent
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One parsed rule file: its rules in file order and the sets to be tried after it."""

    rules: tuple[Rule, ...]
    extends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """One ``[[rule]]`` table and where it stands."""

    values: Mapping[str, Any]
    file: str
    text: str
    line: int
    is_builtin: bool

    def fail(self, key: str, message: str) -> NoReturn:
        line = key_line(self.text, self.line, key) if key else self.line
        raise UsageError(f"{self.file}:{line}: {message}")


def builtin_names() -> tuple[str, ...]:
    """Names of the rule sets that come with slotscope, sorted."""
    return tuple(sorted(path.stem for path in _BUILTIN_DIRECTORY.glob("*.toml")))


def load_rule_sets(names_or_files: Sequence[str] = DEFAULT_RULE_SETS) -> RuleSet:
    """The rules of the given sets (built-in name or path of a file), in that order, then of the sets they extend.

    Raises ``UsageError`` with "file:line" for a rule that cannot be used, and for a name that is neither a built-in set nor
    a readable file.
    """
    if not names_or_files:
        raise UsageError(f"no rule set given (built-in: {', '.join(builtin_names())}; or give a file)")
    files = [_load(name) for name in names_or_files]
    pending = [name for file in files for name in file.extends]
    loaded = set(names_or_files)
    while pending:
        name = pending.pop(0)
        if name not in loaded:
            loaded.add(name)
            files.append(_load(name))
            pending += files[-1].extends
    shown = "+".join(Path(name).stem if name.endswith(".toml") else name for name in names_or_files)
    return RuleSet(shown, tuple(rule for file in files for rule in file.rules))


def origin_name(name_or_file: str) -> str:
    """What ``Rule.origin`` calls a rule set or file before the line number."""
    return f"{name_or_file}.toml" if name_or_file in builtin_names() else name_or_file


def parse_rule_file(text: str, name: str, is_builtin: bool = False) -> RuleFile:
    """Rules from the text of a file; ``name`` is how messages and ``Rule.origin`` call it.  ``is_builtin``: the
    patterns are known to be right, and none is compiled before it is needed."""
    try:
        document = toml_document(text)
    except TomlError as error:
        raise UsageError(f"{name}:{error.line}: not TOML: {error.reason}") from None
    for key in document:
        if key not in _TOP_KEYS:
            raise UsageError(f"{name}:{_top_line(text, key)}: unknown key '{key}'{_nearest(key, _TOP_KEYS)}")
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{name}:{_top_line(text, 'rule')}: rules are written as [[rule]] tables")
    extends = _string_list(document.get("extends", []), text, name)
    if not tables and not extends:
        raise UsageError(f"{name}:1: holds no rules; write at least one [[rule]] table")
    lines = rule_lines(text)
    if len(lines) != len(tables):
        lines = [key_line(text, 0, "rule")] * len(tables)
    rules = [_rule(_Table(values, name, text, line, is_builtin)) for values, line in zip(tables, lines, strict=True)]
    _check_categories(rules)
    return RuleFile(tuple(rules), extends)


def _load(name: str) -> RuleFile:
    if name in builtin_names():
        text = (_BUILTIN_DIRECTORY / f"{name}.toml").read_text(encoding="utf-8")
        return parse_rule_file(text, origin_name(name), is_builtin=True)
    path = Path(name)
    if not (path.suffix == ".toml" or "/" in name or path.is_file()):
        known = builtin_names()
        hint = _did_you_mean(name, known)
        raise UsageError(f"unknown rule set '{name}'{hint} (built-in: {', '.join(known)}; or give a file)")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{name}: cannot read the rule file: {error.strerror}") from None
    return parse_rule_file(text, name)


def _rule(table: _Table) -> Rule:
    for key in table.values:
        if key not in _RULE_KEYS:
            table.fail(key, f"unknown key '{key}'{_nearest(key, _RULE_KEYS)}")
    patterns = {key: _pattern(table, key) for key in _PATTERN_KEYS}
    flags = {key: _flag(table, key) for key in _FLAG_KEYS}
    category, group = _text(table, "category"), _text(table, "group")
    if flags["transparent"] == bool(category):
        both = "both category and transparent" if category else "neither category nor transparent = true"
        table.fail("transparent" if category else "", f"the rule has {both}; give exactly one")
    if flags["transparent"]:
        for key in ("group", "passthrough", "fallback"):
            if table.values.get(key):
                table.fail(key, f"'{key}' has no meaning for a transparent rule")
    if not any(patterns.values()):
        table.fail("", f"the rule has no pattern; give at least one of {', '.join(_PATTERN_KEYS)}")
    _check_placeholders(table, category, patterns)
    return Rule(
        category=category,
        group=group,
        **patterns,
        is_transparent=flags["transparent"],
        is_passthrough=flags["passthrough"],
        is_fallback=flags["fallback"],
        origin=f"{table.file}:{table.line}",
    )


def _text(table: _Table, key: str) -> str:
    if key not in table.values:
        return ""
    value = table.values[key]
    if not isinstance(value, str) or not value.strip():
        table.fail(key, f"'{key}' must be a text that is not empty")
    if "\n" in value or "\r" in value:
        table.fail(key, f"'{key}' must be one line")
    if key == "category" and value == OTHER:
        table.fail(key, f"'{OTHER}' is the name of what no rule takes; choose another category name")
    if key in ("category", "group") and value in NAMES_OF_SUMS:
        table.fail(key, f"'{value}' is the name of a sum in the tables; choose another {key} name")
    return str(value)


def _flag(table: _Table, key: str) -> bool:
    value = table.values.get(key, False)
    if not isinstance(value, bool):
        table.fail(key, f"'{key}' must be true or false")
    return bool(value)


def _pattern(table: _Table, key: str) -> RulePattern | None:
    value = table.values.get(key)
    if value is None:
        return None
    parts = value if isinstance(value, list) and value else [value]
    for part in parts:
        if not isinstance(part, str) or not part:
            table.fail(key, f"'{key}' must be a regular expression that is not empty, or a list of them")
        if not table.is_builtin:
            _check_pattern(table, key, RulePattern((part,)))
    pattern = RulePattern(tuple(parts))
    if not table.is_builtin:
        _check_pattern(table, key, pattern)
    return pattern


def _check_pattern(table: _Table, key: str, pattern: RulePattern) -> None:
    text = pattern.text
    try:
        _ = pattern.compiled
    except (re.error, RecursionError, OverflowError) as error:
        table.fail(key, f"'{key}' is no regular expression: {error} in '{text}'")
    if may_explode(text):
        table.fail(key, f"'{key}' can take exponential time: its repetition reads one text in several ways in '{text}'")


def _check_placeholders(table: _Table, category: str, patterns: Mapping[str, RulePattern | None]) -> None:
    placeholders = PLACEHOLDER.findall(category)
    known = {"dso"}
    for key in ("function", "file", "dso"):
        pattern = patterns[key] if placeholders else None
        known |= set(pattern.compiled.groupindex) if pattern else set()
    for name in placeholders:
        if name not in known:
            table.fail("category", f"'{{{name}}}' is neither {{dso}} nor a named group of this rule's patterns")


def _check_categories(rules: Iterable[Rule]) -> None:
    """Pass-through and group belong to the category, so the rules of one file must agree about them."""
    first: dict[str, Rule] = {}
    groups: dict[str, Rule] = {}
    for rule in rules:
        if rule.is_transparent:
            continue
        earlier = first.setdefault(rule.category, rule)
        if earlier.is_passthrough != rule.is_passthrough:
            raise UsageError(f"{rule.origin}: category '{rule.category}' differs in 'passthrough' from {earlier.origin}")
        if rule.group and groups.setdefault(rule.category, rule).group != rule.group:
            raise UsageError(f"{rule.origin}: category '{rule.category}' has another group in {groups[rule.category].origin}")


def _string_list(value: object, text: str, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name}:{_top_line(text, 'extends')}: 'extends' must be a list of rule-set names")
    for item in value:
        if item not in builtin_names():
            line = _top_line(text, "extends")
            raise UsageError(f"{name}:{line}: unknown rule set '{item}'{_nearest(item, builtin_names())}")
    return tuple(value)


def _top_line(text: str, key: str) -> int:
    header = re.compile(rf"\s*\[+\s*[\"']?{re.escape(key)}\b")
    assigned = key_line(text, 0, key)
    lines = text.splitlines()
    if assigned > 1 or re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[0] if lines else ""):
        return assigned
    return next((number for number, line in enumerate(lines, 1) if header.match(line)), 1)


def _nearest(name: str, known: Sequence[str]) -> str:
    return _did_you_mean(name, known) or f" (there are: {', '.join(known)})"


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f", did you mean '{close[0]}'?" if close else ""
