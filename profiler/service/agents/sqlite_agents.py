"""The agents in the aggregator's SQLite file."""

from __future__ import annotations

import json

from profiler.codec.json_values import from_json, to_json
from profiler.protocol.hello import AgentHello
from profiler.service.agents.agent_registry import KnownAgent
from profiler.store.sqlite_file import SqliteFile

TABLES = ("CREATE TABLE agents (name TEXT NOT NULL PRIMARY KEY, hello TEXT NOT NULL, heard_ns INTEGER NOT NULL) STRICT",)


class SqliteAgentRegistry:
    """See ``AgentRegistry`` for the operations."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def greet(self, name: str, hello: AgentHello, heard_ns: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", (name, json.dumps(to_json(hello)), heard_ns))

    def heard(self, name: str, heard_ns: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE agents SET heard_ns = ? WHERE name = ?", (heard_ns, name))

    def agents(self) -> tuple[KnownAgent, ...]:
        with self._file.reading() as connection:
            rows = connection.execute("SELECT name, hello, heard_ns FROM agents ORDER BY name")
            return tuple(KnownAgent(name, from_json(AgentHello, json.loads(hello)), heard) for name, hello, heard in rows)
