"""What is said of a whole run: how busy the GPU was, then its operators by what of the time could go, then chains of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical.style import label_of
from ncu_roofline.analyses.run.frames import CHAINS, OPERATORS, Run
from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.traces import PYTORCH
from ncu_roofline.rendering.document import Document, Note, Section, Table
from ncu_roofline.rendering.frames import records

Row = dict[str, Any]
TOP, _CHAINS = 15, 5
CHAINS_SHOWN = ("chain", "shapes", "calls", "seconds", "share", "flops", "bytes", "roof", "recoverable")
_SHOWN = ("operator", "shapes", "direction", "group", *CHAINS_SHOWN[2:8], "fraction", "recoverable", "why")
_TOLD, _NAMES, _WORTH = 3, 5, 0.02  # operators in sentences, names of them, and the share of the time that makes one worth it
_COUNTS, _MANY = 0.05, 0.1  # shares of idle time and of short kernels that are worth a sentence
_ALIKE = 0.01  # a rank that takes no more than so much less than another takes as long
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
        shown, good = ([{**row, "roof": row["roof"] and label_of(row["roof"])} for row in some] for some in (mine, fused))
        shown = [{**row, "operator": row["operator"] or f"({row['why']})"} for row in shown[: top or None]]
        good = [row for row in good if row["recoverable"] > _WORTH][: _CHAINS if top else None]
        rest = percent(sum(row["share"] for row in mine[len(shown) :]))
        more = len(mine) - len(shown)
        legend = f"... and {more} more, {rest} of the kernels' time" if more else ""
        about = "Operators that follow each other, as far as sizes show each on the result of the one before, as one kernel:"
        blocks: list[Table | Section] = [Table("operators", OPERATORS, shown, _SHOWN, legend=legend)]
        blocks += [Table("chains", CHAINS, good, CHAINS_SHOWN, "Fused", about=about)] if good else []
        told = [*roofs_under(frames, run, mine), *(how(mine) if notes else ())]
        blocks += [Section(told, "Method")] if told else []
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
    waits, parts = [run["busy"] / run["wall"] for run in ranks.values()], []
    for name, alike, apart in (
        ("wall", "all take", "takes longest"),
        ("kernel_seconds", "all compute for", "computes longest"),
    ):
        slow, fast = (pick(ranks.values(), key=lambda run: run[name]) for pick in (max, min))
        least, most = (format_value(run[name], "second", 3) for run in (fast, slow))
        if fast[name] < (1 - _ALIKE) * slow[name]:
            less = percent(1 - fast[name] / slow[name])
            parts.append(f"rank {slow['rank']} {apart}, {most}, rank {fast['rank']} least, {least} ({less} less)")
        else:
            parts.append(f"{alike} {most}")
    yield f"{len(ranks)} ranks: {'; '.join(parts)}; their GPUs are busy for {percent(min(waits))} to {percent(max(waits))}."


def sentences(run: Mapping[str, Any], operators: Sequence[Any], chains: Sequence[Any]) -> Iterator[str]:
    """How much of the run the GPU did something, what is known of it, and what could go."""
    kernels, copies, launching = (format_value(run[f"{name}_seconds"], "second", 3) for name in ("kernel", "copy", "launch"))
    alone = run["launches"] == run["kernels"]
    work = plural(run["kernels"], "kernel") if alone else f"{run['launches']:,} kernels, copies and fills"
    if not run["wall"] > 0:
        take = "takes" if run["launches"] == 1 else "take"
        yield f"No timeline: {work} {take} {format_value(run['kernel_seconds'] + run['copy_seconds'], 'second', 3)}."
    else:
        share = run["busy"] / run["wall"]
        text = f"The GPU is busy for {percent(share)} of {format_value(run['wall'], 'second', 3)}, with {work}"
        if share < _IDLE:
            text += ": most of the time it waits for its host, and what follows is about the rest"
        elif run["copy_seconds"] > run["kernel_seconds"]:
            text += ": mostly with copies and fills, and operators are about the rest"
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
        f"{percent(run['attributed'])} of the kernels' time is attributed to operators; for {percent(run['modelled'])} "
        f"their shapes give what they need."
    )
    names: dict[str, list[float]] = {}
    for row in operators:
        if row["operator"]:
            names.setdefault(name_of(row), []).append(row["share"])
    most = sorted(names, key=lambda name: -sum(names[name]))[:_NAMES]
    if len(names) > 1 and any(len(names[name]) > 1 for name in most):
        yield f"By operator, whatever its shapes: {', '.join(f'{name} {percent(sum(names[name]))}' for name in most)}."
    if any(row["why"] == "no shapes" and row["share"] > _WORTH for row in operators):
        where = "torch.profiler.profile" if run["format"] == PYTORCH else "torch.autograd.profiler.emit_nvtx"
        yield f"Shapes are recorded with {where}(record_shapes=True)."
    for share, what in ((run["graphs"], "in CUDA graphs"), (run["unrecorded"], "of launches that were not recorded")):
        if share > 0:
            yield f"{percent(share)} of it is {what}: it cannot be attributed to operators."
    if math.isnan(run["recoverable"]):
        return
    gain = format_value(run["recoverable"] * run["kernel_seconds"], "second", 3)
    yield f"At the roofs {percent(run['recoverable'])} of the kernels' time could be saved ({gain}):"
    best = sorted((row for row in operators if row["recoverable"] > 0), key=lambda row: -row["recoverable"])
    for row in [row for row in best if row["recoverable"] > _WORTH][:_TOLD] or best[:1]:
        for_what = "bytes" if row["roof"] == load_spec().memory else "operations"
        name = clean(" ".join(filter(None, (row["operator"], row["shapes"], row["direction"]))))
        name += f" in {clean(shorten(row['group'], 60))}" if row["group"] else ""
        yield (
            f"{name}: {percent(row['share'])} of the kernels' time, at {percent(row['fraction'])} of the "
            f"{label_of(row['roof'])} roof for the {for_what} it needs: {percent(row['recoverable'])} could be saved."
        )
    chain = max(chains, key=lambda chain: chain["recoverable"], default=None)
    if chain and chain["recoverable"] > max(_WORTH, best[0]["recoverable"] if best else 0.0):
        yield (
            f"{clean(chain['chain'])}, {plural(chain['calls'], 'time')}: {percent(chain['share'])} of the kernels' time; "
            f"fused into one kernel {percent(chain['recoverable'])} could be saved."
        )


def _idle_time(run: Mapping[str, Any]) -> Iterator[str]:
    """Why the GPU did nothing for a time that counts."""
    idle = run["wall"] - run["busy"]
    if idle < _COUNTS * run["wall"]:
        return
    why = (
        (run["late"], "its host launched too late to keep it busy (launch-bound)"),
        (run["queued"], "it waited with work that was launched in time"),
        (idle - run["late"] - run["queued"], "the trace does not show why"),
    )
    parts = [f"for {percent(time / run['wall'])} of the run {text}" for time, text in why if time > 0.005 * run["wall"]]
    yield (
        f"It is idle for {format_value(idle, 'second', 3)} in {plural(int(run['gaps']), 'gap')}, the longest "
        f"{format_value(run['longest_gap'], 'second', 3)} before {clean(run['after_gap'])}: {', '.join(parts)}."
    )


def roofs_under(frames: Run, run: Mapping[str, Any], operators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The roofs that operators stand under, and where they are from."""
    under, origins = {row["roof"] for row in operators}, dict[str, list[str]]()
    for row in records(frames.roof_columns):
        if (row["run"], row["gpu"]) == (run["run"], run["gpu"]) and row["roof"] in under:
            value = format_value(row["value"], f"{row['unit']}/s", 3)
            origins.setdefault(row["origin"], []).append(f"{label_of(row['roof'])} {value}")
    if origins:
        told = [f"{', '.join(roofs)} ({origin})" for origin, roofs in origins.items()]
        yield f"Roofs: {'; '.join(told)}."


def how(operators: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
    reasons: dict[str, float] = {}
    for row in operators:
        if row["why"]:
            reasons[row["why"]] = reasons.get(row["why"], 0.0) + row["share"]
    told = [f"{why} {percent(share)}" for why, share in sorted(reasons.items(), key=lambda item: -item[1]) if share > 0]
    if told:
        yield f"Unknown, in shares of the kernels' time: {', '.join(told)}."
