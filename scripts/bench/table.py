"""The figures for a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from scripts.bench.figure import GOALS, Figure
from scripts.bench.machine import Machine

_SIGNS = {True: "[green]ok[/]", False: "[red]no[/]", None: ""}
_PEER_COLUMNS = {
    "thread_ms_per_token": "main thread, ms/token",
    "bytes_per_token": "bytes/token",
    "tokens_per_s": "tokens/s",
    "first_ms": "first, ms",
    "lag_ms": "lag, ms",
    "freeze_ms": "freeze, ms",
}


def figures(found: Iterable[Figure], *, quick: bool) -> Table:
    title = "kimi_demo (a trial run: too short for its figures to mean anything)" if quick else "kimi_demo"
    table = Table(Column("key", no_wrap=True), "what", "value", "to reach", "", title=title, title_justify="left")
    for one in found:
        goal = GOALS[one.key]
        reach = "reported" if goal.limit is None else f"{'≥' if goal.at == 'least' else '≤'} {goal.limit:g}"
        value = (
            f"not run: {one.not_run}"
            if one.value is None
            else f"{one.value:.3g} {goal.unit}"
            if one.value < 100
            else f"{one.value:.0f} {goal.unit}"
        )
        table.add_row(one.key, goal.what, value, reach, _SIGNS[one.ok])
    return table


def peers(found: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table("page", *_PEER_COLUMNS.values(), title="Beside other pages, same server, same run", title_justify="left")
    for name, costs in found.items():
        if "not_run" not in costs:
            table.add_row(name, *(f"{costs[column]:.3g}" if costs[column] < 100 else f"{costs[column]:.0f}" for column in _PEER_COLUMNS))
    table.caption = "\n".join(f"{name}: not run, {costs['not_run']}" for name, costs in found.items() if "not_run" in costs)
    table.caption_justify = "left"
    return table


def show(machine: Machine, found: Iterable[Figure], others: Mapping[str, Mapping[str, Any]], *, quick: bool) -> None:
    console = Console(highlight=False, markup=True)
    console.print(
        f"{machine.processor}, {machine.cpus} CPUs, {machine.memory_gb:g} GB, {machine.system}; Chromium {machine.browser}", markup=False
    )
    console.print(f"{machine.busy:.0%} of the processors were busy before the start.", markup=False)
    console.print(figures(found, quick=quick))
    if others:
        console.print(peers(others))
