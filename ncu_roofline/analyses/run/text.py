"""What is said of a whole run: how busy the GPU was, then its operators by what of the time could go, then chains of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.run.frames import CHAINS, OPERATORS, Run
from ncu_roofline.base.texts import clean, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.traces import PYTORCH
from ncu_roofline.rendering.document import Document, Note, Section, Table
from ncu_roofline.rendering.frames import records

Row = dict[str, Any]
TOP, _CHAINS = 15, 5
CHAINS_SHOWN = ("chain", "shapes", "calls", "seconds", "share", "flops", "bytes", "roof", "recoverable")
_SHOWN = ("operator", "shapes", "direction", "group", *CHAINS_SHOWN[2:8], "fraction", "recoverable", "why")
_TOLD, _WORTH = 3, 0.02  # operators in sentences, and the share of the time that makes one worth it
_TELLING = 0.005  # by so much more of the time a chain must save than its operator alone
_COUNTS, _MANY = 0.05, 0.1  # shares of idle time and of short kernels that are worth a sentence
_IDLE = 0.5  # a GPU that is busy for less waits for its host


def runs_of(frames: Run) -> list[tuple[Row, list[Row], list[Row]]]:
    """Each trace and GPU: the row of the run, its operators, its chains."""
    runs, *others = (records(table) for table in (frames.run_columns, frames.operator_columns, frames.chain_columns))

    def of(run: Row, rows: list[Row]) -> list[Row]:
        return [row for row in rows if (row["run"], row["gpu"]) == (run["run"], run["gpu"])]

    return [(run, of(run, others[0]), of(run, others[1])) for run in runs]


def name_of(row: Row) -> str:
    """What a person calls an operator: without the library that all are of; the kernel where no operator is known."""
    return clean(row["operator"].removeprefix("aten::") or row["group"] or "no operator")


def place_of(run: Row, frames: Run) -> str:
    """The GPU of a run, with its rank, or the trace where there are several."""
    trace = run["run"] if len(set(frames.run_columns["run"])) > 1 else ""
    return clean(", ".join(filter(None, [f"Rank {run['rank']}" if run["rank"] else "", f"GPU {run['gpu']}", trace])))


def document(frames: Run, *, title: str = "", top: int = TOP, notes: bool = True) -> Document:
    """The whole, a part per trace and GPU where there are several; ``top`` operators each, 0 for all."""
    made, parts = runs_of(frames), []
    for run, mine, fused in made:
        number = f"Rank {run['rank']}, GPU {run['gpu']}" if run["rank"] else f"GPU {run['gpu']}"
        shown, good = mine[: top or None], [row for row in fused if row["recoverable"] > _WORTH][: _CHAINS if top else None]
        rest = percent(sum(row["share"] for row in mine[len(shown) :]))
        more = len(mine) - len(shown)
        legend = f"... and {more} more, {rest} of the kernels' time" if more else ""
        about = "Operators that follow each other, as far as sizes tell each on the result of the one before, as one kernel:"
        blocks: list[Table | Section] = [Table("operators", OPERATORS, shown, _SHOWN, legend=legend)]
        blocks += [Table("chains", CHAINS, good, CHAINS_SHOWN, "Fused", about=about)] if good else []
        blocks += [Section(list(how(run, mine)), "How it was worked out")] if notes else []
        facts = ", ".join(filter(None, [run["device"], run["run"], run["format"]]))
        part = Document("Operators of a run", facts, list(sentences(run, mine, fused)), blocks)
        parts.append(replace(part, title=number, facts=f"{number}, {part.facts}") if len(made) > 1 else part)
    told = [Note(text) for text in frames.notes]
    if len(parts) == 1:
        return replace(parts[0], title=title or parts[0].title, notes=told)
    return Document(title or "Operators of runs", sentences=list(_ranks([run for run, *_ in made])), blocks=parts, notes=told)


def _ranks(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How far the processes of one run are apart."""
    ranks = {run["rank"]: run for run in runs if run["wall"] > 0}
    if len(ranks) < max(len(runs), 2) or "" in ranks:
        return
    slow, fast = (pick(ranks.values(), key=lambda run: run["wall"]) for pick in (max, min))
    waits = [run["busy"] / run["wall"] for run in ranks.values()]
    yield (
        f"Of {len(ranks)} ranks {slow['rank']} takes longest, {format_value(slow['wall'], 'second', 3)}, {fast['rank']} least, "
        f"{format_value(fast['wall'], 'second', 3)} ({percent(1 - fast['wall'] / slow['wall'])} less); their GPUs are busy for "
        f"{percent(min(waits))} to {percent(max(waits))}."
    )


def sentences(run: Mapping[str, Any], operators: Sequence[Any], chains: Sequence[Any]) -> Iterator[str]:
    """How much of the run the GPU did something, what is known of it, and what could go."""
    kernels, copies, launching = (format_value(run[f"{name}_seconds"], "second", 3) for name in ("kernel", "copy", "launch"))
    alone = run["launches"] == run["kernels"]
    work = plural(run["kernels"], "kernel") if alone else f"{run['launches']:,} kernels, copies and fills"
    if math.isnan(run["wall"]):
        yield f"No timeline: {work} take {format_value(run['kernel_seconds'] + run['copy_seconds'], 'second', 3)}."
    else:
        share = run["busy"] / run["wall"]
        text = f"The GPU is busy for {percent(share)} of {format_value(run['wall'], 'second', 3)}, with {work}"
        if share < _IDLE:
            text += ": most of the time it waits for its host, and what follows is about the rest"
        if share < _IDLE and run["launch_seconds"] > 0.1 * run["wall"]:
            text += f"; {launching} of the run are launches alone"
        yield f"{text}."
        yield from _idle_time(run)
    if run["short"] > _MANY and run["kernels"] > 1:
        call = format_value(run["launch_call"], "second", 3)
        yield f"{percent(run['short'])} of its {run['kernels']:,} kernels are shorter than a call that launches one ({call})."
    if run["copy_seconds"] > 0.05 * run["kernel_seconds"]:
        yield f"Copies and fills take {copies} beside {kernels} of kernels."
    if not run["kernel_seconds"]:
        return
    yield (
        f"Of the kernels' time {percent(run['attributed'])} was asked for by operators, and for {percent(run['modelled'])} "
        f"their shapes tell what they need."
    )
    for share, what in ((run["graphs"], "in CUDA graphs"), (run["unrecorded"], "of launches that were not recorded")):
        if share > 0:
            yield f"{percent(share)} of it is {what}: no operator can be given it."
    if math.isnan(run["recoverable"]):
        return
    spec = load_spec()
    labels = {spec.memory: "DRAM", **{precision.id: precision.label for precision in spec.precisions}}

    def inside(chain: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
        """Whether an operator is in a chain, all of its calls."""
        return row["operator"].removeprefix("aten::") in chain["chain"].split(" + ") and bool(chain["calls"] == row["calls"])

    for row in [row for row in operators if row["recoverable"] > _WORTH][:_TOLD]:
        for_what = "bytes" if row["roof"] == spec.memory else "operations"
        name = clean(f"{row['operator'] or 'work without an operator'} {row['shapes']}")
        text = (
            f"{name}: {percent(row['share'])} of the kernels' time, at {percent(row['fraction'])} of the "
            f"{labels[row['roof']]} roof for the {for_what} it needs: {percent(row['recoverable'])} could go"
        )
        chain = next((chain for chain in chains if inside(chain, row)), None)
        if chain and row["share"] == max(one["share"] for one in operators if inside(chain, one)):
            left = row["share"] - chain["share"] * chain["least"] / chain["seconds"]
            text += f" ({percent(left)} fused: {chain['chain']})" if left > row["recoverable"] + _TELLING else ""
        yield f"{text}."


def _idle_time(run: Mapping[str, Any]) -> Iterator[str]:
    """Why the GPU did nothing for a time that counts."""
    idle = run["wall"] - run["busy"]
    if idle < _COUNTS * run["wall"]:
        return
    why = (
        (run["late"], "its host launched too late to keep it busy (launch-bound)"),
        (run["queued"], "it waited with work that was launched in time"),
        (idle - run["late"] - run["queued"], "the trace does not tell why"),
    )
    parts = [f"for {percent(time / run['wall'])} of the run {text}" for time, text in why if time > 0.005 * run["wall"]]
    yield (
        f"It is idle for {format_value(idle, 'second', 3)} in {plural(int(run['gaps']), 'gap')}, the longest "
        f"{format_value(run['longest_gap'], 'second', 3)} before {clean(run['after_gap'])}: {', '.join(parts)}."
    )


def how(run: Mapping[str, Any], operators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the numbers mean, and what is unknown."""
    yield (
        "What an operator needs follows from its shapes and types: operations, and bytes of what goes in and comes out, each "
        "once. It is no count: kernels may move and execute more."
    )
    if any(row["fraction"] > 1.005 for row in operators):
        yield (
            "More than 100 % of a roof: a kernel found in a cache what its operator reads from memory, or does with fewer "
            "operations what the formula counts (Winograd's convolutions)."
        )
    origins = dict.fromkeys(row["origin"] for row in operators if row["origin"])
    if origins:
        yield f"Roofs: {'; '.join(origins)}."
    reasons: dict[str, float] = {}
    for row in operators:
        if row["why"]:
            reasons[row["why"]] = reasons.get(row["why"], 0.0) + row["share"]
    told = [f"{why} {percent(share)}" for why, share in sorted(reasons.items(), key=lambda item: -item[1]) if share > 0]
    if told:
        yield f"Unknown, in shares of the kernels' time: {', '.join(told)}."
    if run["format"] == PYTORCH and "no shapes" in reasons:
        yield "Shapes are recorded with torch.profiler.profile(record_shapes=True)."
