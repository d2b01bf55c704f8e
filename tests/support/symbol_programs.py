"""C++ and Rust programs with much inlining, for tests of symbolization."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from support.kept_builds import kept, key_of

HEADER = r"""
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace geometry {
struct Point {
  int x, y;
  int dot(const Point &o) const { return x * o.x + y * o.y; }
  bool operator<(const Point &o) const { return x < o.x || (x == o.x && y < o.y); }
};
namespace {
inline int hidden(int v) { return v * 31 + 7; }
}
template <class T, int N> struct Ring {
  std::vector<T> items;
  void push(T t) { if (items.size() >= N) items.erase(items.begin()); items.push_back(t); }
  template <class F> int fold(F f) const { int r = 0; for (const auto &i : items) r = f(r, i); return hidden(r); }
};
struct Shape {
  virtual ~Shape() {}
  virtual int area() const = 0;
};
int total(const std::vector<Shape *> &shapes);
std::string describe(const std::map<std::string, Point> &points);
}
"""
FIRST_UNIT = r"""
#include "shapes.h"
namespace geometry {
struct Square : Shape { int side; Square(int s) : side(s) {} int area() const override { return side * side; } };
struct Box : Square {
  int height;
  Box(int s, int h) : Square(s), height(h) {}
  int area() const override { return side * height; }
};
static int twice(int v) { return hidden(v) * 2; }
int total(const std::vector<Shape *> &shapes) {
  int sum = 0;
  for (auto *s : shapes) sum += twice(s->area());
  return sum;
}
extern "C" int plain_c_name(int v) { return twice(v) + 1; }
}
template <class F> __attribute__((noinline)) int applied(F f, int v) { return f(v) + f(v + 1); }
inline int local_scopes(int v) {
  struct Local {
    int base;
    __attribute__((noinline)) int plus(int x) const { return base + geometry::hidden(x); }
  } local{v};
  return applied([&](int x) __attribute__((noinline)) { return local.plus(x) * x; }, v);
}
int unused_function(int v) { return geometry::hidden(v) + 3; }
int main(int argc, char **argv) {
  geometry::Ring<geometry::Point, 4> ring;
  for (int i = 0; i < argc * 10; i++) ring.push({i, argc - i});
  std::sort(ring.items.begin(), ring.items.end());
  int folded = ring.fold([argc](int r, const geometry::Point &p) { return r + p.dot({argc, 2}); });
  geometry::Ring<double, 9> other;
  for (int i = 0; i < argc; i++) other.push(i / 2.0);
  geometry::Square square(argc);
  geometry::Box box(argc, 3);
  std::map<std::string, geometry::Point> points;
  for (int i = 0; i < argc; i++) points[argv[i]] = {i, i};
  auto text = geometry::describe(points);
  return geometry::total({&square, &box}) + local_scopes(argc) + folded + text.size() + geometry::plain_c_name(argc) +
         other.fold([](int r, double d) { return r + int(d); });
}
"""
SECOND_UNIT = r"""
#include "shapes.h"
namespace geometry {
static std::string number(int v) { return std::to_string(hidden(v)); }
std::string describe(const std::map<std::string, Point> &points) {
  std::string out;
  std::vector<std::pair<std::string, int>> rows;
  for (auto &[name, p] : points) rows.emplace_back(name + number(p.x), p.dot({2, 3}));
  std::stable_sort(rows.begin(), rows.end(), [](auto &a, auto &b) { return a.second < b.second; });
  for (auto &row : rows) out += row.first;
  return out;
}
}
"""
CXX_SOURCES = {"shapes.h": HEADER, "first.cpp": FIRST_UNIT, "second.cpp": SECOND_UNIT}
CXX_VARIANTS = {
    "O2-dwarf5": ("-O2", "-g", "-gdwarf-5"),
    "O3-dwarf4": ("-O3", "-g", "-gdwarf-4"),
    "O2-lto": ("-O2", "-g", "-flto"),
    "O2-g1": ("-O2", "-g1"),
    "O1-gc-sections": ("-O1", "-g", "-ffunction-sections", "-Wl,--gc-sections", "-gz"),
}

RUST_SOURCE = r"""
use std::collections::HashMap;
use std::fmt;
mod tree {
    pub trait Visit {
        fn weight(&self) -> u64;
        fn doubled(&self) -> u64 { self.weight().wrapping_mul(2) }
    }
    pub struct Leaf(pub u64);
    impl Leaf {
        #[inline]
        pub fn mixed(&self, rounds: u64) -> u64 {
            (0..rounds).map(|x| x.wrapping_mul(self.0)).filter(|x| x % 3 == 0).fold(1, |a, b| a.rotate_left(5) ^ b)
        }
    }
    impl Visit for Leaf {
        #[inline(never)]
        fn weight(&self) -> u64 { self.mixed(self.0 & 63) }
    }
    pub struct Pair<A, B>(pub A, pub B);
    impl<A: Visit, B: Visit> Visit for Pair<A, B> {
        #[inline(never)]
        fn weight(&self) -> u64 { self.0.doubled() ^ self.1.weight() }
    }
}
use tree::{Leaf, Pair, Visit};
impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "leaf {}", self.0) }
}
#[inline(never)]
fn total<V: Visit>(items: &[V]) -> u64 { items.iter().map(|v| v.weight()).sum() }
fn main() {
    let n = std::env::args().count() as u64;
    let leaves: Vec<Leaf> = (0..n * 50).map(Leaf).collect();
    let pairs: Vec<Pair<Leaf, Leaf>> = (0..n * 9).map(|i| Pair(Leaf(i), Leaf(i + 1))).collect();
    let mut seen: HashMap<u64, Vec<String>> = HashMap::new();
    for leaf in &leaves { seen.entry(leaf.mixed(9) % 7).or_default().push(leaf.to_string()); }
    let mut keys: Vec<_> = seen.into_iter().map(|(k, v)| (v.len(), k)).collect();
    keys.sort_unstable();
    println!("{} {} {:?}", total(&leaves), total(&pairs), keys);
}
"""
RUST_VARIANTS = {
    "debug1-default": ("-C", "opt-level=3", "-C", "debuginfo=1"),
    "line-tables-v0": ("-C", "opt-level=3", "-C", "debuginfo=line-tables-only", "-C", "symbol-mangling-version=v0"),
    "dwarf5-fat-lto-v0": (
        *("-C", "opt-level=3", "-C", "debuginfo=2", "-C", "lto=fat", "-C", "codegen-units=1"),
        *("-C", "symbol-mangling-version=v0", "-C", "dwarf-version=5"),
    ),
}


def build_cxx(directory: Path, options: Sequence[str], keeps: bool = True) -> Path:
    """The C++ program of two units, as ``directory / "program"``; skips without g++.  ``keeps``: the compiler may have run
    elsewhere, and earlier, and its name of that directory is in the debug information."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    linker = next((word.removeprefix("-fuse-ld=") for word in options if word.startswith("-fuse-ld=")), "bfd")
    versions = (_version(compiler), _version(f"ld.{linker}"))
    command = [compiler, "-std=c++17", *options, "first.cpp", "second.cpp", "-o", "program"]

    def build(directory: Path) -> None:
        for name, text in CXX_SOURCES.items():
            (directory / name).write_text(text)
        subprocess.run(command, check=True, capture_output=True, cwd=directory)

    if not keeps:
        build(directory)
        return directory / "program"
    key = key_of((*CXX_SOURCES.values(), *command, *versions))
    return Path(shutil.copy(kept(key, "program", build), directory / "program"))


def build_rust(directory: Path, options: Sequence[str], keeps: bool = True) -> Path:
    """The Rust program, standard library only, as ``directory / "app"``; skips without rustc or when it does not know an
    option.  ``keeps``: as of ``build_cxx``."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed")
    command = [compiler, "--edition", "2021", *options, "app.rs", "-o", "app"]

    def build(directory: Path) -> None:
        (directory / "app.rs").write_text(RUST_SOURCE)
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=directory)
        if done.returncode != 0:
            pytest.skip(f"rustc refuses {' '.join(options)}: {done.stderr.strip().splitlines()[-1:]}")

    if not keeps:
        build(directory)
        return directory / "app"
    key = key_of((RUST_SOURCE, *command, _version(compiler)))
    return Path(shutil.copy(kept(key, "app", build), directory / "app"))


@cache
def _version(program: str) -> str:
    """What it prints of itself; "" for one that is not installed."""
    path = shutil.which(program)
    return subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout if path else ""
