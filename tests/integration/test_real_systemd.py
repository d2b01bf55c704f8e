"""The units of docs/deploy.md under a real systemd, with all their restrictions: installed by the page's own commands, they do
real jobs, survive restarts and kills, and `attach --unit` finds a real unit."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.page_machines import blocks_of
from support.real_systemd import SystemdMachine, systemd_machine, why_not

pytestmark = [pytest.mark.perf, pytest.mark.full, pytest.mark.usefixtures("perf")]

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = blocks_of((ROOT / "docs" / "deploy.md").read_text(encoding="utf-8"))
STORE = "/var/lib/slotscope-serve"
AS_SERVER = f"runuser -u slotscope-serve -- slotscope --store {STORE}"
HOST_IS_READY = f"{AS_SERVER} hosts | grep ' ready ' || {{ journalctl --no-pager --lines 50; false; }}"
# A process of another user in a mount namespace of its own, as many services are.
NODE = """\
[Service]
ExecStart=/opt/demo/epoch-fast 100000000
DynamicUser=yes
PrivateTmp=yes
"""
TASKS = """\
[Service]
Environment=LD_LIBRARY_PATH=/opt/python/lib
ExecStart=/opt/python/bin/python3 /opt/checkout/tests/workloads/python_ratio.py tasks
DynamicUser=yes
"""
TARGETS = """
[[target]]
name = "unit"
unit = "node.service"
[[target]]
name = "tasks"
comm = "tasks"
profiler = "py-spy"
"""
KPTR_RESTRICT = Path("/proc/sys/kernel/kptr_restrict")
# Of linux/capability.h.
NUMBERS = {"dac_read_search": 2, "sys_ptrace": 19, "syslog": 34, "perfmon": 38}
COMMON = {"id": "", "session": "", "instance": "host1", "round": 0, "frequency_hz": 997}


def block(words: str) -> str:
    """The only block of the page with these words."""
    (found,) = [block.script for block in BLOCKS if words in block.script]
    return found


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SystemdMachine]:
    missing = [program for program in ("gcc", "openssl", "curl") if shutil.which(program) is None]
    if why_not() or missing:
        pytest.skip(why_not() or f"{missing[0]} is not installed")
    with systemd_machine(tmp_path_factory.mktemp("systemd")) as machine:
        _prepare(machine)
        machine.run(block("useradd --system --user-group --home-dir /var/lib/slotscope-serve"))
        machine.run(block("useradd --system --user-group --home-dir /var/lib/slotscope "))
        machine.wait_until(HOST_IS_READY, 90)
        yield machine


def _prepare(machine: SystemdMachine) -> None:
    """What the page has done before it comes to services."""
    machine.run(block("-subj '/CN=slotscope authority'"))
    machine.run(block("openssl x509 -req"))
    machine.run(
        f"install -d -m 700 {STORE}; umask 077; cd /etc/slotscope\n"
        f"slotscope --store {STORE} token create host1 --scope agent > token\n"
        f"slotscope --store {STORE} token create me --scope operator > /root/operator.token"
    )
    program = block("cat > epoch.c").partition("for host in")[0]
    machine.run(f"{program}\ninstall -d /opt/demo /var/lib/slotscope\ninstall epoch-base epoch-fast /opt/demo/")
    agent_file = block("cat > /etc/slotscope/agent.toml")
    machine.run(agent_file.rpartition("slotscope agent ")[0])
    machine.run(f"cat >> /etc/slotscope/agent.toml <<'END'\n{TARGETS}END")
    for name, text in (("node", NODE), ("tasks", TASKS)):
        machine.run(f"cat > /etc/systemd/system/{name}.service <<'END'\n{text}END\nsystemctl start dbus {name}")


def asked(machine: SystemdMachine, path: str, *options: str) -> dict[str, Any]:
    """A request of the operator, as the page makes it; its answer."""
    command = (
        "printf 'Authorization: Bearer %s\\n' \"$(cat /root/operator.token)\" | curl -sS --fail-with-body "
        f"--cacert /etc/slotscope/ca.pem -H @- {' '.join(options)} https://aggregator:8640/api/v1/{path}"
    )
    answer: dict[str, Any] = json.loads(machine.run(command))
    return answer


def outcome(machine: SystemdMachine, **values: object) -> dict[str, Any]:
    """A job that is ordered, when it is over."""
    (machine.root / "root/order.json").write_text(json.dumps({"agent": "host1", "order": COMMON | values}))
    job = asked(machine, "jobs", "-H 'Content-Type: application/json'", "--data @/root/order.json")["order"]["id"]
    deadline = time.monotonic() + 120
    while True:
        found = asked(machine, f"jobs/{job}")
        if found["report"]["state"] in ("done", "failed", "refused", "lost", "cancelled"):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def shares(machine: SystemdMachine, variant: str) -> dict[str, float]:
    """Of functions, as a report has them once the capture and its names have arrived."""
    command = f"{AS_SERVER} report {variant} --by function --format json"
    machine.wait_until(f"{command} | grep merkleize", 60)
    report = json.loads(machine.run(f"{command} 2> /dev/null"))
    return {row["name"]: row["self"] / report["total"] for row in report["rows"]}


def state(machine: SystemdMachine, unit: str) -> dict[str, str]:
    printed = machine.run(f"systemctl show --property=MainPID,NRestarts,ActiveState {unit}")
    return dict(line.split("=", 1) for line in printed.splitlines())


def status(machine: SystemdMachine, unit: str) -> dict[str, str]:
    """What the kernel says of the unit's process."""
    lines = machine.run(f"cat /proc/{state(machine, unit)['MainPID']}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize(
    ("unit", "capabilities"),
    [("slotscope-agent", ("perfmon", "sys_ptrace", "dac_read_search", "syslog")), ("slotscope-serve", ())],
)
def test_the_kernel_confines_them(machine: SystemdMachine, unit: str, capabilities: tuple[str, ...]) -> None:
    found = status(machine, unit)
    expected = sum(1 << NUMBERS[name] for name in capabilities)
    assert {int(found[field], 16) for field in ("CapEff", "CapBnd", "CapAmb")} == {expected}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    assert found["Uid"].split()[0] != "0"


@pytest.mark.parametrize("target", ["node", "unit"])
def test_a_process_is_profiled_under_all_restrictions(machine: SystemdMachine, target: str) -> None:
    """perf samples another user's process, user and kernel part, by name and by unit; what it says is what a look of root's
    says of the same process."""
    found = outcome(machine, kind="attach", name=target, variant=f"by-{target}", windows=1, window_s=3)
    assert found["report"]["state"] == "done", found
    by_unit = shares(machine, f"by-{target}")
    assert by_unit["shuffle_list"] + by_unit["merkleize"] > 0.9
    machine.run(f"slotscope --store /root/own attach --unit node.service --duration 3 --frequency 997 --variant root-{target}")
    report = json.loads(
        machine.run(f"slotscope --store /root/own report root-{target} --by function --format json 2> /dev/null")
    )
    by_root = {row["name"]: row["self"] / report["total"] for row in report["rows"]}
    assert by_unit["shuffle_list"] == pytest.approx(by_root["shuffle_list"], abs=0.1)


def test_a_python_process_is_read_under_all_restrictions(machine: SystemdMachine) -> None:
    if not (machine.root / "usr/local/bin/py-spy").exists():
        pytest.skip("py-spy is not installed")
    found = outcome(machine, kind="attach", name="tasks", variant="tasks", windows=1, window_s=3, frequency_hz=200)
    assert found["report"]["state"] == "done", found
    machine.wait_until(f"{AS_SERVER} report tasks", 60)
    report = json.loads(machine.run(f"{AS_SERVER} report tasks --by function --format json 2> /dev/null"))
    total = {row["name"].split()[0]: row["total"] for row in report["rows"]}
    assert total["three"] / (total["three"] + total["one"]) == pytest.approx(0.75, abs=0.1)


def test_a_workload_runs_under_all_restrictions(machine: SystemdMachine) -> None:
    metrics = [{"name": "epoch", "spec": r"regex:epoch took ([\d.]+ ms)"}]
    found = outcome(machine, kind="run", name="epochs", variant="fast", runs=2, metrics=metrics)
    assert found["report"]["state"] == "done", found
    fast = shares(machine, "fast")
    assert fast["shuffle_list"] + fast["merkleize"] > 0.8


def test_it_sees_what_it_needs(machine: SystemdMachine) -> None:
    """What the agent says of its host: recording works, kernel functions have names."""
    (host,) = asked(machine, "hosts")["hosts"]
    checks = {check["name"]: check for check in host["hello"]["fitness"]}
    assert not [check for check in checks.values() if check["is_fatal"]]
    assert checks["recording"]["fitness"] == "ok", checks["recording"]
    assert checks["kernel names"]["fitness"] == "ok" or KPTR_RESTRICT.read_text().strip() == "2"


@pytest.mark.parametrize("how", ["systemctl restart {unit}", "systemctl kill --signal=KILL {unit}"])
def test_they_come_back_and_go_on(machine: SystemdMachine, how: str) -> None:
    before = {unit: state(machine, unit)["MainPID"] for unit in ("slotscope-serve", "slotscope-agent")}
    for unit in before:
        machine.run(how.format(unit=unit))
    for unit, pid in before.items():
        machine.wait_until(
            f"systemctl is-active {unit} && [ $(systemctl show --property=MainPID --value {unit}) != {pid} ]", 60
        )
    machine.wait_until(block("/readyz"), 60)
    found = outcome(machine, kind="attach", name="node", variant="again", windows=1, window_s=1)
    assert found["report"]["state"] == "done", found


def test_nothing_was_denied_or_lost(machine: SystemdMachine) -> None:
    for unit in ("slotscope-serve", "slotscope-agent"):
        log = machine.run(f"journalctl --no-pager --unit {unit}")
        assert "Traceback" not in log
        assert "not permitted" not in log
        assert "slsc_" not in log
