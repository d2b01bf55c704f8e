"""Links between the pages lead somewhere, and the picture in README shows the output that stands below it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / name if name else page
        assert target.is_file(), f"{page.name}: {name}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {name}#{anchor}"


def test_the_picture_shows_the_output_below_it() -> None:
    shown = ElementTree.parse(ROOT / "docs" / "compare.svg").iter("{http://www.w3.org/2000/svg}text")
    cells = [element.text or "" for element in shown]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    output = readme[readme.index("$ slotscope compare portable sha-ni") :]
    table = output[: output.index("\nmetric ")]
    assert cells == re.findall(r"\S+(?: \S+)*", table)
