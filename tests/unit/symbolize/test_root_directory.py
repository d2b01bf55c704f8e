"""Paths below another root directory, against what a process in it is told by the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symbolize.root_directory import RootDirectory

PATHS = (
    "/usr/lib/real",
    "/lib/real",
    "/absolute/real",
    "/up/real",
    "/chain/real",
    "/usr/lib/../lib/./real",
    "/usr/lib/file-link",
    "/../../usr/lib/real",
    "/absent/real",
    "/usr/lib/absent",
)
INSIDE = "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); print(*map(os.path.realpath, sys.argv[2:]), sep='\\n')"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/real").write_text("inside")
    (root / "lib").symlink_to("usr/lib")
    (root / "absolute").symlink_to("/usr/lib")
    (root / "up").symlink_to("../../../../usr/lib")
    (root / "chain").symlink_to("/absolute")
    (root / "usr/lib/file-link").symlink_to("/lib/real")
    return root


def test_links_are_followed_as_inside(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    told = subprocess.run([sys.executable, "-c", INSIDE, str(root), *PATHS], check=True, capture_output=True, text=True)
    directory = RootDirectory(root)
    files = [directory.file(path) for path in PATHS]
    assert [directory.place(str(file)) for file in files] == told.stdout.splitlines()
    assert [file.exists() for file in files] == [True] * 8 + [False] * 2
    assert all(directory.holds(str(file)) for file in files)


def test_an_absolute_link_never_leads_out(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("outside")
    (root / "escape").symlink_to(secret)
    (root / "climb").symlink_to("../secret")
    assert (root / "escape").read_text() == "outside"
    directory = RootDirectory(root)
    assert not directory.file("/escape").exists()
    assert not directory.file("/climb").exists()


def test_a_loop_of_links_is_no_file(root: Path) -> None:
    (root / "one").symlink_to("/two")
    (root / "two").symlink_to("one")
    assert not RootDirectory(root).file("/one/real").exists()


@pytest.mark.parametrize(
    ("recorded", "inside"),
    [
        ("/srv/box/usr/lib/real", "/usr/lib/real"),
        ("/usr/lib/real", "/usr/lib/real"),
        ("/srv/boxes/usr/lib/real", "/srv/boxes/usr/lib/real"),
    ],
)
def test_paths_as_they_are_seen_from_outside(recorded: str, inside: str, root: Path) -> None:
    assert RootDirectory(root, "/srv/box").inside(recorded) == inside
    assert RootDirectory(root, "/").inside(recorded) == recorded
