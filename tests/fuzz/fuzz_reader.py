"""Feeds damaged reports to everything that reads reports, until the time is up or something but a RooflineError comes out.

    python tests/fuzz/fuzz_reader.py --seconds 60 [--seed 1] [--first ITERATION]

Seed and iteration reproduce a finding: ``--seed S --first I --seconds 0`` runs that one again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":  # a script finds its own folder only
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ncu_roofline.analyses import render
from ncu_roofline.errors import RooflineError
from ncu_roofline.model import measurements_of, roofline
from ncu_roofline.model.explanations import explain
from ncu_roofline.report import (
    FocusMetric,
    KernelData,
    ReportData,
    RuleMessage,
    RuleResult,
    Session,
    encode_report,
    read_report,
)
from ncu_roofline.report.framing import file_start, frame, open_raw, scan
from ncu_roofline.report.schema import message
from tests.factory import A100, H100, NO_WORK, complete, flops, kernel, timing, traffic
from tests.report.frames import packed
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section

TOO_SLOW = 10.0  # seconds for one small report
_EDGES = (0, 1, 2, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1)
_DFMA = "smsp__sass_thread_inst_executed_op_dfma_pred_on"
_CHARTED = {  # what the chart of the sample section reads
    f"{_DFMA}.sum.peak_sustained": 3456.0,
    f"{_DFMA}.sum.per_cycle_elapsed": 350.0,
    "dram__bytes.sum.peak_sustained": 1280.0,
    "dram__bytes.sum.per_second": 2.5e11,
    "dram__cycles_elapsed.avg.per_second": 1.2e9,
}

Record = tuple[bytes, list[bytes]]


def samples() -> list[bytes]:
    """Whole reports that hold, between them, everything the reader knows."""
    kernels = [
        kernel({**complete(), **_CHARTED}, nvtx=("outer", "inner"), rule_results=(_rule(),), sections=(_section(),)),
        kernel({**H100, **timing(), **NO_WORK, **flops("f", fma=9), **traffic(1, 2, 3)}, "void f<g<h>, (int)2>(float *)"),
        kernel({**A100, **timing()}, "_ZN2ns6kernelEv", sections=(_section(), b""), clock_locked=True),
    ]
    others = [
        KernelData("one", kind=kind, metrics=complete(), instances={"i": [(1, 2.5), ("A", 3)]})
        for kind in ("range", "graph", "cmdlist")
    ]
    session = Session(
        host="box", os="Linux", ncu_version="2022.3.0.0", command_line="ncu --set full -o out ./app 'a b'", clock_control="none"
    )
    return [
        b"".join(encode_report(ReportData(some, session))) for some in (kernels, others, [*kernels * 3, *others], kernels[:1])
    ]


def _rule() -> RuleResult:
    said = RuleMessage("warning", "said", "title", id=1, speedup=12.5, speedup_type="local", focus=(FocusMetric("dram", 1.5),))
    return RuleResult("Rule", "a rule", "Section", (said,))


def _section() -> bytes:
    """A roofline chart of FP64 against DRAM."""
    peak, work = per_second(f"{_DFMA}.sum.peak_sustained"), per_second(f"{_DFMA}.sum.per_cycle_elapsed")
    bandwidth = per_second("dram__bytes.sum.peak_sustained", clock="dram__cycles_elapsed.avg.per_second")
    definitions = {"derived": f"{_DFMA}.sum * 2 + 1"}
    roofs, points = (roof(peak, bandwidth),), (point(work, one("dram__bytes.sum.per_second")),)
    return section(chart(roofs=roofs, points=points), definitions=definitions)


def exercise(path: Path) -> None:
    """Everything there is to ask of a report.  A RooflineError is a result; any other exception is a bug."""
    try:
        with read_report(path) as report:
            report.columns(report.metric_names)
            str((report.session, report.session.application, report.device, report.devices, report.launches()))
            for launch in report.kernels:
                str((launch.name, launch.function_name, launch.launch, launch.nvtx, launch.device, launch.rule_results))
                str([(name, launch.metrics.get(name), launch.metrics.instances(name)) for name in launch.metrics.names()])
            measurements = measurements_of(report, charts=True)
            explain(report, measurements)
        for rows in (roofline(measurements), roofline(measurements, by="kernel"), roofline(measurements, source="embedded")):
            for output_format in ("json", "text"):
                render(rows, output_format)
        roofline(measurements, by="application", clock="max")
    except RooflineError:
        pass


def flip_bits(data: bytes, generator: random.Random) -> bytes:
    """A few bits changed."""
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 16))):
        changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def cut_off(data: bytes, generator: random.Random) -> bytes:
    """The end is missing."""
    return data[: generator.randrange(len(data))]


def splice(data: bytes, generator: random.Random) -> bytes:
    """A stretch replaced by another stretch."""
    start, source = generator.randrange(len(data)), generator.randrange(len(data))
    length = generator.choice((1, 4, 30, 300))
    return data[:start] + data[source : source + length] + data[start + generator.choice((0, length)) :]


def change_length(data: bytes, generator: random.Random) -> bytes:
    """Four bytes, perhaps a length, replaced by a number that is off by little or by much."""
    start = generator.randrange(max(len(data) - 4, 1))
    old = int.from_bytes(data[start : start + 4], "little")
    new = generator.choice((*_EDGES, old + 1, old - 1, old + 4, old * 2)) % 2**32
    return data[:start] + new.to_bytes(4, "little") + data[start + 4 :]


def insert_number(data: bytes, generator: random.Random) -> bytes:
    """A field number and a number, both as protobuf writes them, put in somewhere."""
    start = generator.randrange(len(data) + 1)
    tag = generator.randrange(1, 30) << 3 | generator.choice((0, 0, 2, 5, 1))
    return data[:start] + varint(tag) + varint(generator.choice(_EDGES) << generator.choice((0, 32))) + data[start:]


def duplicate(data: bytes, generator: random.Random) -> bytes:
    """A stretch, perhaps a field, many times over."""
    start = generator.randrange(len(data))
    length = generator.randrange(1, 60)
    return data[: start + length] + data[start : start + length] * generator.choice((1, 2, 100)) + data[start + length :]


def varint(number: int) -> bytes:
    """``number`` as protobuf writes it."""
    result = bytearray()
    while number >= 0x80:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


Mutation = Callable[[bytes, random.Random], bytes]
MUTATIONS: tuple[Mutation, ...] = (flip_bits, cut_off, splice, change_length, insert_number, duplicate)


def blocks_of(data: bytes, path: Path) -> list[Record]:
    """Header and records of each block."""
    path.write_bytes(data)
    raw = open_raw(path)
    found = [
        (data[block.start + 4 : block.payload], [data[start : start + length] for start, length in block.records])
        for block in scan(raw)
    ]
    raw.close()
    return found


def mutate_inside(blocks: Sequence[Record], mutation: Mutation, generator: random.Random) -> bytes:
    """A report whose frame is right, with damage inside a header or a record, or with blocks in another order."""
    blocks = [(header, list(records)) for header, records in blocks]
    if generator.random() < 0.1:
        generator.shuffle(blocks)
    number = generator.randrange(len(blocks))
    header, records = blocks[number]
    if records and generator.random() < 0.8:
        place = generator.randrange(len(records))
        records[place] = mutation(records[place], generator) if records[place] else b""
    else:
        blocks[number] = (mutation(header, generator), records)
    return file_start() + b"".join(_framed(*block) for block in blocks)


def _framed(header: bytes, records: Sequence[bytes]) -> bytes:
    payload = b"".join(map(frame, records))
    size = message("BlockHeader")(payload_size=len(payload)).SerializeToString()  # the last one given counts
    return frame(header + size) + payload


def damaged(seed: int, iteration: int, wholes: Sequence[bytes], blocks: Sequence[Sequence[Record]]) -> tuple[str, bytes]:
    """The damaged report of an iteration, and what was done to it."""
    generator = random.Random(f"{seed}:{iteration}")
    number, mutation = generator.randrange(len(wholes)), generator.choice(MUTATIONS)
    kind = generator.random()
    if kind < 0.1:
        return f"{mutation.__name__} of a frame", mutation(packed(wholes[number]), generator)
    if kind < 0.3:
        return mutation.__name__, mutation(wholes[number], generator)
    inside = mutate_inside(blocks[number], mutation, generator)
    if kind < 0.4:
        return f"{mutation.__name__} inside, in a frame", packed(inside)
    return f"{mutation.__name__} inside", inside


def fuzz(seconds: float, seed: int, first: int = 0) -> int:
    """Run for some time; 0 if nothing was found, else 1, the finding printed."""
    started, iteration, done = time.monotonic(), first, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / "fuzz.ncu-rep"
        wholes = samples()
        blocks = [blocks_of(whole, path) for whole in wholes]
        while True:
            what, data = damaged(seed, iteration, wholes, blocks)
            path.write_bytes(data)
            before = time.monotonic()
            try:
                exercise(path)
                if time.monotonic() - before > TOO_SLOW:
                    raise TimeoutError(f"took {time.monotonic() - before:.0f} s")
            except Exception:
                traceback.print_exc()
                print(f"FOUND ({what}): run again with --seed {seed} --first {iteration} --seconds 0", file=sys.stderr)
                return 1
            done[what] += 1
            iteration += 1
            if time.monotonic() - started >= seconds:
                break
    took = time.monotonic() - started
    print(f"nothing found in {iteration - first} iterations, {(iteration - first) / took:.0f} per second, seed {seed}")
    print(", ".join(f"{count} {name}" for name, count in sorted(done.items())))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--first", type=int, default=0, metavar="ITERATION")
    args = parser.parse_args(argv)
    seed = args.seed if args.seed is not None else time.time_ns() % 10**9
    warnings.simplefilter("error")
    return fuzz(args.seconds, seed, args.first)


if __name__ == "__main__":
    sys.exit(main())
