"""The file of a token: whose it has to be, what may stand in it, and that agents and people are held to the same."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

import pytest

from collectors.agent.config.agent_file import read_agent_file
from profiler.cli.aggregator_client import fetch_json, server_options
from profiler.errors import UsageError
from profiler.protocol.token_file import read_token

TOKEN = "slsc_" + "x" * 43
AGENT_FILE = 'server = "https://aggregator:8640"\ntoken_file = "token"\nspool = "spool"\n'


def token_file(directory: Path, text: str = TOKEN + "\n", mode: int = 0o600) -> Path:
    path = directory / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400])
@pytest.mark.parametrize("text", [TOKEN, TOKEN + "\n", f"  {TOKEN}\r\n"])
def test_a_token_of_its_user_alone_is_read(tmp_path: Path, text: str, mode: int) -> None:
    assert read_token(token_file(tmp_path, text, mode)) == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UsageError, match=f"others may read the token \\(mode {mode:o}\\): `chmod 600 ") as error:
        read_token(token_file(tmp_path, mode=mode))
    assert TOKEN not in str(error.value)


def test_the_way_out_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "my keys").mkdir()
    path = token_file(tmp_path / "my keys", mode=0o644)
    with pytest.raises(UsageError, match="`chmod 600 ") as error:
        read_token(path)
    subprocess.run(str(error.value).split("`")[1], shell=True, check=True)
    assert read_token(path) == TOKEN


def test_the_mask_of_an_access_list_is_taken_for_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd 254 and later hand a credential to the service's user by such a list, which shows as mode 440."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_token(token_file(tmp_path, mode=0o440)) == TOKEN
    with pytest.raises(UsageError, match="others may read the token"):
        read_token(token_file(tmp_path, mode=0o444))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "another"))
    with pytest.raises(UsageError, match="others may read the token"):
        read_token(token_file(tmp_path, mode=0o440))


@pytest.mark.parametrize(
    "text", ["", "short", "two words of a token that is long", "ü" * 40, f"{TOKEN}\n{TOKEN}\n", TOKEN + " " * 5000 + TOKEN]
)
def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="holds no token") as error:
        read_token(token_file(tmp_path, text))
    assert not text or text.strip() not in str(error.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{tmp_path / 'token'}: no token can be read from it \\(No such file"):
        read_token(tmp_path / "token")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="it is not a file"):
            read_token(path)


def test_agents_and_people_are_held_to_the_same(tmp_path: Path) -> None:
    token_file(tmp_path, mode=0o644)
    (tmp_path / "agent.toml").write_text(AGENT_FILE)
    with pytest.raises(UsageError) as of_agent:
        read_agent_file(tmp_path / "agent.toml")
    options = server_options(argparse.Namespace(server="http://127.0.0.1:1", token_file=tmp_path / "token", ca=None))
    assert options is not None
    with pytest.raises(UsageError) as of_person:
        fetch_json(options, "/api/v1/hosts")
    assert str(of_agent.value) == f"{tmp_path / 'agent.toml'}:2: token_file: {of_person.value}"
