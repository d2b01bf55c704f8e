"""What a source map says, as plain values."""

from __future__ import annotations

import numpy as np

from symbolize.dwarf.source_map import SourceMap


def described(known: SourceMap, address: int) -> list[tuple[str, str, int]]:
    """(name, file, line) of the chain at an address, innermost first."""
    (row,) = known.answer_rows(np.array([address], np.uint64)).tolist()
    text, answers, nodes = known.strings.text, known.answers, known.nodes
    if row < 0:
        return []
    node, file, line = int(answers.node[row]), int(answers.file[row]), int(answers.line[row])
    chain = []
    while node >= 0:
        name = int(nodes.name[node])
        chain.append((text(int(known.names.name[name])) if name >= 0 else "", text(file) if file >= 0 else "", line))
        file, line, node = int(nodes.call_file[node]), int(nodes.call_line[node]), int(nodes.parent[node])
    return chain
