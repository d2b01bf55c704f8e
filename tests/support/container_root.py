"""A container made by hand: a root directory with a program, its libraries and their debug files, and a process in it.

Every file also exists on the host under the same path, as another build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
unsigned long library_work(unsigned long);
__attribute__((noinline)) static double used(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
static volatile unsigned long sink;
__attribute__((noinline)) void WORK(void) { for (unsigned long i = 0; i < 400000; i++) sink += i * i; }
__attribute__((noinline)) void libc_calls(void) { for (int i = 0; i < 60000; i++) sink += random(); }
int main(int argc, char **argv) {
    double end = argc > 1 ? atof(argv[1]) : 60;
    puts("ready");
    fflush(stdout);
    while (used() < end) { WORK(); sink += library_work(sink); libc_calls(); }
}
"""
LIBRARY = r"""
static volatile unsigned long kept;
__attribute__((noinline)) static void LIBRARY_WORK(void) { for (unsigned long i = 0; i < 400000; i++) kept += i ^ kept; }
unsigned long library_work(unsigned long seed) { kept = seed; LIBRARY_WORK(); return kept; }
"""
# ENTER ROOT [LOWER UPPER WORK] -- PROGRAM...: runs a program with ROOT as its root directory, in PID and mount namespaces of
# its own; with LOWER and the others ROOT is an overlay of them.  Prints the program's process ID.
ENTER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void must(int answer, const char *what) { if (answer < 0) { perror(what); exit(3); } }
int main(int argc, char **argv) {
    char *root = argv[1], options[4096];
    int rest = 2;
    must(unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare");
    must(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0), "private");
    if (strcmp(argv[2], "--")) {
        snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", argv[2], argv[3], argv[4]);
        must(mount("overlay", root, "overlay", 0, options), "overlay");
        rest = 5;
    } else
        must(mount(root, root, 0, MS_BIND | MS_REC, 0), "bind");
    pid_t child = fork();
    must(child, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(chdir(root), "chdir");
        must(mount("proc", "proc", "proc", 0, 0), "proc");
        must(syscall(SYS_pivot_root, ".", "old"), "pivot_root");
        must(chdir("/"), "chdir");
        must(umount2("/old", MNT_DETACH), "umount");
        execv(argv[rest + 1], argv + rest + 1);
        must(-1, argv[rest + 1]);
    }
    printf("%d\n", child);
    fflush(stdout);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
"""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """``root``: the container's.  ``program``, ``library``, ``c_library``: paths of stripped files, in the container and on the
    host.  ``program_debug``, ``library_debug``: where the names are, as the host sees the files.  ``enter``: the runtime."""

    root: Path
    program: Path
    library: Path
    c_library: Path
    program_debug: Path
    library_debug: Path
    enter: Path

    def inside(self, path: Path) -> Path:
        return self.root / str(path).lstrip("/")


def build(directory: Path) -> ContainerFiles:
    """The program's debug file is found by its build ID, through an absolute symbolic link; the library's by .gnu_debuglink."""
    root, app = directory / "root", directory / "app"
    inside = root / str(app).lstrip("/")
    for each in (app, inside, root / "proc", root / "old"):
        each.mkdir(parents=True)
    _compile(app, app, "host")
    _compile(inside, app, "inside")
    enter = directory / "enter"
    (directory / "enter.c").write_text(ENTER)
    _run("gcc", "-O1", str(directory / "enter.c"), "-o", str(enter))
    c_library = _copy_libraries(app / "server", root)
    build_id = build_id_of(inside / "server")
    program_debug = root / "usr/lib/debug/server.debug"
    library_debug = root / f"usr/lib/debug{app}" / "libwork.so.debug"
    library_debug.parent.mkdir(parents=True)
    _separate(inside / "server", program_debug, with_link=False)
    _separate(inside / "libwork.so", library_debug, with_link=True)
    named = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    named.parent.mkdir(parents=True)
    named.symlink_to("/usr/lib/debug/server.debug")
    return ContainerFiles(root, app / "server", app / "libwork.so", c_library, program_debug, library_debug, enter)


def _compile(directory: Path, app: Path, whose: str) -> None:
    """``app``: where the program will see ``directory``."""
    (directory / "work.c").write_text(LIBRARY)
    (directory / "server.c").write_text(PROGRAM)
    options = ("-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id")
    library = directory / "libwork.so"
    _run(
        "gcc",
        *options,
        "-shared",
        "-fPIC",
        "-Wl,-soname,libwork.so",
        f"-DLIBRARY_WORK={whose}_library_part",
        str(directory / "work.c"),
        "-o",
        str(library),
    )
    run_path = f"-Wl,-rpath,{app}"
    _run(
        "gcc",
        *options,
        f"-DWORK={whose}_part",
        str(directory / "server.c"),
        str(library),
        run_path,
        "-o",
        str(directory / "server"),
    )
    for name in ("work.c", "server.c"):
        (directory / name).unlink()


def _copy_libraries(program: Path, root: Path) -> Path:
    """The C library and the loader; the copy of the former is another build, as its build ID says."""
    found = re.findall(r"(/\S+) \(0x", _run("ldd", str(program)))
    for name in found:
        if "libwork" not in name:
            (root / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(name).resolve(), root / name.lstrip("/"))
    c_library = Path(next(name for name in found if "libc.so" in name))
    known = bytes.fromhex(build_id_of(c_library))
    copy = root / str(c_library).lstrip("/")
    content = copy.read_bytes()
    assert content.count(known) == 1
    copy.write_bytes(content.replace(known, known[::-1]))
    return c_library


def _separate(file: Path, debug: Path, with_link: bool) -> None:
    _run("objcopy", "--only-keep-debug", str(file), str(debug))
    _run("strip", str(file))
    if with_link:
        _run("objcopy", f"--add-gnu-debuglink={debug}", str(file))


def build_id_of(file: Path) -> str:
    found = re.search(r"Build ID: ([0-9a-f]+)", _run("readelf", "-n", str(file)))
    assert found is not None
    return found[1]


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True, slots=True)
class Contained:
    """A program in a container.  ``pid``: as the host has it; ``runtime``: started it, and ends with it."""

    pid: int
    runtime: subprocess.Popen[str]

    def kill(self) -> None:
        self.runtime.kill()
        self.runtime.wait()
        if self.runtime.stdout is not None:
            self.runtime.stdout.close()


def start(files: ContainerFiles, *arguments: str, layers: Sequence[Path] = ()) -> Contained:
    """``layers``: lower, upper and working directory of an overlay that is mounted at the root."""
    command = [str(files.enter), str(files.root), *map(str, layers), "--", str(files.program), *arguments]
    runtime = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    first, second = _line(runtime), _line(runtime)  # the program's own and the runtime's, in any order
    return Contained(int(second if first == "ready\n" else first), runtime)


def start_chroot(files: ContainerFiles, *arguments: str) -> Contained:
    """In a root directory of its own, but in the host's mount namespace."""
    command = ["chroot", str(files.root), str(files.program), *arguments]
    runtime = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert _line(runtime) == "ready\n"
    return Contained(runtime.pid, runtime)


def _line(runtime: subprocess.Popen[str]) -> str:
    assert runtime.stdout is not None
    line = runtime.stdout.readline()
    if not line:
        runtime.stdout.close()
        raise AssertionError(f"it ended with {runtime.wait()}")
    return line
