"""Which renderer shows an experiment in the format that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports.terminal_table import TerminalStyle

if TYPE_CHECKING:
    from profiler.cli.options import ReadingOptions
    from profiler.experiment.evaluate import Evaluation
    from profiler.model.experiment_result import ExperimentPower


def render_evaluation(evaluation: Evaluation, options: ReadingOptions, is_redacted: bool, style: TerminalStyle) -> str:
    """What an experiment found."""
    text = _rendered(evaluation, options, style)
    if not is_redacted:
        return text
    from reports.redact import host_names, redacted

    return redacted(text, host_names(evaluation.arms), (str(Path.home()),))


def _rendered(evaluation: Evaluation, options: ReadingOptions, style: TerminalStyle) -> str:
    from reports.experiment_report import ExperimentReport

    result = evaluation.result
    report = ExperimentReport(result, evaluation.arms, options.rows)
    match options.format:
        case "json":
            from reports.json_experiment import render_experiment_json

            return render_experiment_json(result)
        case "csv":
            from reports.csv_report import render_comparison_csv

            return render_comparison_csv(*(condition.comparison for condition in result.conditions))
        case "markdown":
            from reports.markdown_experiment import render_experiment_markdown

            return render_experiment_markdown(report)
    from reports.terminal_experiment import render_experiment

    return render_experiment(report, style)


def render_power(power: ExperimentPower, options: ReadingOptions, style: TerminalStyle) -> str:
    """What more runs could show."""
    match options.format:
        case "json":
            from reports.json_experiment import render_power_json

            return render_power_json(power)
        case "markdown":
            from reports.markdown_experiment import render_power_markdown

            return render_power_markdown(power, options.rows)
    from reports import terminal_experiment

    return terminal_experiment.render_power(power, options.rows, style)


def write_plots(evaluation: Evaluation, directory: Path) -> list[Path]:
    """Plots as SVG and PNG files in ``directory``, which is made; the files written."""
    from reports.plots.experiment_plots import experiment_plots

    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for plot in experiment_plots(evaluation.result):
        for suffix, data in (("svg", plot.svg), ("png", plot.png)):
            path = directory / f"{plot.name}.{suffix}"
            path.write_bytes(data)
            written.append(path)
    return written
