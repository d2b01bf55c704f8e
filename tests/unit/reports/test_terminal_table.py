"""Tables at any width: nothing wraps, numbers are never cut, no escape codes unless asked for."""

from __future__ import annotations

import pytest

from reports.terminal_table import Column, TerminalStyle, render_table, wrap

COLUMNS = (
    Column("name", ("persistent_tree::with_updated::rebuild_path", "main"), is_text=True, styles=("", "bold")),
    Column("self ms", ("1,234.5", "0.1")),
    Column("share", ("99.9 %", "0.1 %"), keep=90),
    Column("samples", ("123,456", "12"), keep=40),
    Column("empty", ("", ""), keep=95),
)


def test_everything_fits() -> None:
    assert render_table(COLUMNS, TerminalStyle(80)) == (
        "name                                         self ms   share  samples\n"
        "persistent_tree::with_updated::rebuild_path  1,234.5  99.9 %  123,456\n"
        "main                                             0.1   0.1 %       12\n"
    )


def test_names_are_shortened_before_columns_go() -> None:
    assert render_table(COLUMNS, TerminalStyle(50)) == (
        "name                      self ms   share  samples\n"
        "persistent_...build_path  1,234.5  99.9 %  123,456\n"
        "main                          0.1   0.1 %       12\n"
    )


def test_columns_go_by_priority() -> None:
    assert render_table(COLUMNS, TerminalStyle(32)) == (
        "name             self ms   share\npersis...d_path  1,234.5  99.9 %\nmain                 0.1   0.1 %\n"
    )


def test_extra_columns_go_before_names_become_hard_to_read() -> None:
    interval = Column("95 % interval", ("9.1 to 9.9 %", ""), keep=20, is_extra=True)
    assert render_table((*COLUMNS[:2], interval), TerminalStyle(55)) == (
        "name                                         self ms\n"
        "persistent_tree::with_updated::rebuild_path  1,234.5\n"
        "main                                             0.1\n"
    )
    assert "9.1 to 9.9 %" in render_table((*COLUMNS[:2], interval), TerminalStyle(56))


def test_columns_that_go_on_below_are_not_dropped() -> None:
    columns = (
        Column("row", ("wall", "user"), is_text=True),
        Column("base", ("1,000", "800"), keep=60),
        Column("delta", ("-100", "-80"), is_repeated=True),
        Column("interval", ("[-110, -90]", "[-88, -72]"), keep=70, goes_below=True),
        Column("verdict", ("faster", "no difference beyond 1 %"), is_word=True),
        Column("p", ("0.001", "0.2"), keep=70, goes_below=True),
    )
    whole = "row    base  delta     interval  verdict                       p"
    assert render_table(columns, TerminalStyle(len(whole))).splitlines()[0] == whole
    # The mean goes first; then interval and p go below together, and the mean has room again.
    assert render_table(columns, TerminalStyle(len(whole) - 1)).splitlines()[0] == whole.replace(" base  delta", "delta")
    assert render_table(columns, TerminalStyle(len(whole) - 8)) == (
        "row    base  delta  verdict\n"
        "wall  1,000   -100  faster\n"
        "user    800    -80  no difference beyond 1 %\n"
        "\n"
        "row   delta     interval      p\n"
        "wall   -100  [-110, -90]  0.001\n"
        "user    -80   [-88, -72]    0.2\n"
    )


@pytest.mark.parametrize("width", [1, 10, 20])
def test_what_goes_below_is_there_however_narrow_the_terminal(width: int) -> None:
    columns = [Column("row", ("a",), is_text=True)]
    columns += [Column(f"c{place}", (f"value {place}",), keep=100 - place, goes_below=True) for place in range(1, 6)]
    text = render_table(columns, TerminalStyle(width))
    assert [text.count(f"value {place}\n") + text.count(f"value {place} ") for place in range(1, 6)] == [1] * 5


def test_the_short_form_stands_where_the_whole_name_has_no_room() -> None:
    names = Column(
        "name", ("state::copy(std::vector<Validator> const&)", "main()"), is_text=True, short_cells=("state::copy", "main")
    )
    assert render_table((names, COLUMNS[1]), TerminalStyle(30)) == (
        "name                   self ms\nstate::copy            1,234.5\nmain()                     0.1\n"
    )


def test_paths_are_shortened_from_the_start() -> None:
    paths = Column("line", ("/home/build/src/work.cpp:4", "/usr/include/c++/12/map:7"), is_text=True, is_path=True)
    assert render_table((paths, COLUMNS[1]), TerminalStyle(29)) == (
        "line                  self ms\n.../src/work.cpp:4    1,234.5\n.../c++/12/map:7          0.1\n"
    )


def test_columns_that_must_stay_are_never_cut() -> None:
    lines = render_table(COLUMNS, TerminalStyle(10)).splitlines()
    assert lines[1].endswith("1,234.5")
    assert "99.9 %" not in lines[1]


def test_color_only_when_asked_for() -> None:
    plain = render_table(COLUMNS, TerminalStyle(80, color=False))
    colored = render_table(COLUMNS, TerminalStyle(80, color=True))
    assert "\x1b" not in plain
    assert "\x1b[1m" in colored


def test_names_cannot_inject_markup_or_escapes() -> None:
    hostile = ("[bold red]x[/]", "\x1b]0;title\x07", "a\nb", ":smile:", "\udcff")
    lines = render_table([Column("name", hostile, is_text=True), Column("n", ("1",) * 5)], TerminalStyle(80)).splitlines()
    assert [line.rsplit(maxsplit=1)[0] for line in lines[1:]] == [
        "[bold red]x[/]", "\\x1b]0;title\\x07", "a\\x0ab", ":smile:", "\\xff",
    ]  # fmt: skip


def test_wide_characters_take_two_cells() -> None:
    lines = render_table([Column("name", ("木木木", "abc"), is_text=True), Column("n", ("1", "2"))], TerminalStyle(80))
    assert lines.splitlines() == ["name    n", "木木木  1", "abc     2"]


def test_paragraphs_wrap_at_blanks_but_not_inside_a_quantity() -> None:
    assert wrap("the total fell by 12.5 % in 30 runs", TerminalStyle(22)) == "the total fell by\n  12.5 % in 30 runs"
    assert wrap("a" * 30 + " b", TerminalStyle(20), "  ") == "  " + "a" * 30 + "\n    b"
