"""A small C++ program of two units in every form in which debug information comes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

Files = dict[str, bytes]  # by name

_HEADER = r"""
#pragma once
namespace shapes {
struct Point { int x, y; inline int dot(const Point &o) const { return x * o.x + y * o.y; } };
template <class T> inline T larger(T a, T b) { return a > b ? a : b; }
struct Shape { virtual int area() const = 0; };
int total(const Shape *const *all, int count);
}
"""
_FIRST = r"""
#include "shapes.h"
namespace shapes {
struct Square : Shape { int side; Square(int s) : side(s) {} int area() const override { return larger(side, 2) * side; } };
static inline int twice(int v) { if (v > 7) { int w = v * v; return larger(w, v); } return v * 2; }
__attribute__((noinline)) int total(const Shape *const *all, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) sum += twice(all[i]->area());
  return sum;
}
}
int weigh(int);
int main(int argc, char **) {
  shapes::Square one(argc), two(argc + 1);
  const shapes::Shape *all[] = {&one, &two};
  return shapes::total(all, 2) + weigh(argc);
}
"""
_SECOND = r"""
#include "shapes.h"
namespace {
__attribute__((noinline)) int hidden(int v) { shapes::Point p{v, 2}; return p.dot({v, v}) + shapes::larger(v, 5); }
}
int weigh(int v) {
  auto each = [v](int x) { return hidden(x) ^ v; };
  int sum = 0;
  for (int i = 0; i < v; i++) sum += each(i);
  return sum;
}
"""
FORMS: Mapping[str, Sequence[str]] = {
    "dwarf5": ("-gdwarf-5",),
    "dwarf4": ("-gdwarf-4", "-fdebug-types-section"),
    "sections": ("-gdwarf-5", "-ffunction-sections", "-gz=zlib"),
    "split5": ("-gdwarf-5", "-gsplit-dwarf"),
    "split4": ("-gdwarf-4", "-gsplit-dwarf"),
    "packed": ("-gdwarf-4", "-gsplit-dwarf"),
    "debug-file": ("-gdwarf-5",),
    "mini": ("-gdwarf-5",),
    "supplementary": ("-gdwarf-5",),
    "no-index": ("-gdwarf-5", "-Wl,--no-eh-frame-hdr"),
}


def built(form: str) -> Files:
    """Name to content: "program" and the files that belong to it.  Empty where a tool for it is not installed."""
    if shutil.which("g++") is None:
        return {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for file, content in {"shapes.h": _HEADER, "first.cpp": _FIRST, "second.cpp": _SECOND}.items():
            (directory / file).write_text(content)
        # Files are looked for where they were made, too.  llvm-dwp must find them there.
        moved = () if form == "packed" else (f"-fdebug-prefix-map={directory}=/gone",)
        flags = ("-O2", "-Wl,--build-id=sha1", *moved, *FORMS[form])
        if not _ran(directory, "g++", *flags, "-c", "first.cpp", "second.cpp"):
            return {}
        if not _ran(directory, "g++", *flags, "first.o", "second.o", "-o", "program") or not _finished(form, directory):
            return {}
        kept = {"program", *(path.name for path in directory.iterdir() if path.suffix in (".dwo", ".dwp", ".debug", ".sup"))}
        return {name: (directory / name).read_bytes() for name in sorted(kept)}


def _finished(form: str, directory: Path) -> bool:
    """Takes what ``form`` is about out of the program; False where a tool is missing."""
    if form == "packed":
        made = _ran(directory, "llvm-dwp", "-e", "program", "-o", "program.dwp")
        for path in directory.glob("*.dwo"):
            path.unlink()
        return made
    if form == "debug-file":
        return (
            _ran(directory, "objcopy", "--only-keep-debug", "program", "program.debug")
            and _ran(directory, "strip", "program")
            and _ran(directory, "objcopy", "--add-gnu-debuglink=program.debug", "program")
        )
    if form == "mini":
        return (
            _ran(directory, "objcopy", "--strip-debug", "program", "symbols")
            and _ran(directory, "xz", "symbols")
            and _ran(directory, "strip", "program")
            and _ran(directory, "objcopy", "--add-section", ".gnu_debugdata=symbols.xz", "program")
        )
    if form == "supplementary":
        shutil.copy(directory / "program", directory / "other")
        return _ran(directory, "dwz", "-m", "common.sup", "program", "other")
    return True


def _ran(directory: Path, *command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, cwd=directory, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0
