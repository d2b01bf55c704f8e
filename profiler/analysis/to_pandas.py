"""Tables as pandas data frames, for notebooks and scripts; pandas is imported when asked for, never on the way to a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.model.call_stacks import CallStacks
from profiler.model.comparison import Comparison
from profiler.model.costs import ArmCosts, CostTable

if TYPE_CHECKING:
    import pandas as pd


def costs_frame(costs: ArmCosts, dimension: str = "category") -> pd.DataFrame:
    """One row per (row name, run), in table order: name, label, session, variant, host, round, self, total, samples.

    ``self`` and ``total`` are int64 in the event's unit.  Raises ``KeyError`` for a dimension that was not computed.
    """
    import pandas as pd

    table = costs.tables[dimension]
    identities = [info.identity for info in costs.infos]
    rows, runs = len(table.names), len(identities)
    return pd.DataFrame(
        {
            "name": [name for name in table.names for _ in range(runs)],
            "label": [label for label in table.labels for _ in range(runs)],
            "session": [identity.session for identity in identities] * rows,
            "variant": [identity.variant for identity in identities] * rows,
            "host": [info.host.hostname for info in costs.infos] * rows,
            "round": [identity.round for identity in identities] * rows,
            "self": table.self_weight.ravel(),
            "total": table.total_weight.ravel(),
            "samples": table.self_samples.ravel(),
        }
    )


def cost_table_frame(table: CostTable) -> pd.DataFrame:
    """Self weight, one row per name (the index), one column per run, numbered from 0."""
    import pandas as pd

    return pd.DataFrame(table.self_weight, index=pd.Index(table.names, name=table.dimension))


def owners_frame(costs: ArmCosts) -> pd.DataFrame:
    """Leaf category by owner category: leaf, owner, weight."""
    import pandas as pd

    cells = [(cell.leaf, cell.owner, cell.weight) for cell in costs.owners]
    return pd.DataFrame(cells, columns=["leaf", "owner", "weight"])


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """One row per (candidate, row), totals included under the name they carry; intervals as two columns, NaN without one."""
    import pandas as pd

    records = []
    for candidate in comparison.candidates:
        for row in (*candidate.rows, candidate.total):
            interval = row.delta_interval
            records.append(
                {
                    "candidate": candidate.name,
                    "name": row.name,
                    "baseline": row.baseline.mean,
                    "candidate_mean": row.candidate.mean,
                    "delta": row.delta,
                    "delta_low": interval.low if interval else float("nan"),
                    "delta_high": interval.high if interval else float("nan"),
                    "relative": float("nan") if row.relative is None else row.relative,
                    "p": float("nan") if row.p is None else row.p,
                    "p_adjusted": float("nan") if row.p_adjusted is None else row.p_adjusted,
                    "verdict": row.verdict.value,
                }
            )
    columns = ["candidate", "name", "baseline", "candidate_mean", "delta", "delta_low", "delta_high"]
    return pd.DataFrame(records, columns=[*columns, "relative", "p", "p_adjusted", "verdict"])


def call_stacks_frame(stacks: CallStacks) -> pd.DataFrame:
    """One row per stack with own weight: ``stack`` ("outermost;...;innermost"), category, weight over all runs."""
    import pandas as pd

    paths: list[str] = []
    for prefix, frame in zip(stacks.prefix.tolist(), stacks.frame.tolist(), strict=True):
        name = stacks.frames[frame].name.replace(";", ":")
        paths.append(f"{paths[prefix]};{name}" if prefix >= 0 else name)
    weight = stacks.weight.sum(axis=1)
    table = {"stack": paths, "category": [stacks.categories[row] for row in stacks.category.tolist()], "weight": weight}
    frame = pd.DataFrame(table)
    loaded: pd.DataFrame = frame.loc[weight > 0].reset_index(drop=True)
    return loaded
