"""Facts of the host."""

from __future__ import annotations

import subprocess

from collectors.host import cpu_name, host_facts

CPU_INFO = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 9555  64-Core Processor

processor\t: 1
model name\t: another
"""


def test_first_model_name_counts() -> None:
    assert cpu_name(CPU_INFO) == "AMD EPYC 9555 64-Core Processor"
    assert cpu_name("processor : 0\nBogoMIPS : 50.00\n") == ""


def test_facts_are_those_that_uname_and_getconf_give() -> None:
    facts = host_facts()
    uname = subprocess.run(["uname", "-n", "-r", "-m"], capture_output=True, text=True, check=True).stdout.split()
    assert [facts.hostname, facts.kernel, facts.architecture] == uname
    cpus = subprocess.run(["getconf", "_NPROCESSORS_ONLN"], capture_output=True, text=True, check=True).stdout
    assert facts.cpu_count == int(cpus)
