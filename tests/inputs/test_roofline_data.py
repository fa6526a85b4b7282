"""Data files of NERSC's plot scripts: spellings in the wild, roofs, ceilings, the way there and back, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline import render, roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_ceilings, open_input
from ncu_roofline.formats.inputs.roof_files import recognises
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from tests import published, published_report
from tests.factory import H100, V100, complete, kernel, report
from tests.rendering.frames import make_roofline

ROOFS = """\
memroofs 14336 2996.77 828.758
mem_roof_names 'L1' 'L2' 'HBM'
comproofs 7068.86 3535.79
comp_roof_names 'FMA' 'No-FMA'
"""
LABELS = "labels 'nw=1''nw=2''nw=3' 'nw=4''nw=5''nw=6'\n"


def numbers(values: tuple[float, ...]) -> str:
    return " ".join(map(repr, values))


GPP = (
    f"{ROOFS}\n# omit the following if only plotting roofs\nAI_HBM {numbers(published.INTENSITY_DRAM)}\n"
    f"AI_L2 {numbers(published.INTENSITY_L2)}\nAI_L1 {numbers(published.INTENSITY_L1)}\n"
    f"FLOPS {numbers(published.GFLOPS)}\n{LABELS}"
)


def write(folder: Path, text: str, name: str = "gpp.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def points_of(path: Path) -> tuple[ImportedPoint, ...]:
    table = open_input(path)
    assert isinstance(table, PointTable)
    return table.points


def test_published_points(tmp_path: Path) -> None:
    points = roofline(write(tmp_path, GPP)).points.query("level == 'dram'")
    assert list(points["label"]) == [f"nw={nw}" for nw in range(1, 7)]
    assert set(points["kernel"]) == {"gpp"}
    assert list(100 * points["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert list(points["intensity"]) == pytest.approx(published.INTENSITY_DRAM)
    assert points["work"].isna().all()
    assert points["seconds"].isna().all()


def test_published_roofs(tmp_path: Path) -> None:
    roofs = roofline(write(tmp_path, GPP)).roofs.set_index("roof")["value"]
    assert dict(roofs) == pytest.approx(
        {"fp.fma": 7068.86e9, "fp.nofma": 3535.79e9, "l1": 14336e9, "l2": 2996.77e9, "dram": 828.758e9}
    )


CURLY = str.maketrans({"'": "\N{RIGHT SINGLE QUOTATION MARK}"})
SPELLINGS = {
    "as published": GPP,
    "curly quotes": GPP.translate(CURLY),
    "back-ticks": GPP.replace(" '", " `"),
    "double quotes": GPP.replace("'", '"'),
    "double curly": GPP.replace("''", "' '")
    .replace(" '", " \N{LEFT DOUBLE QUOTATION MARK}")
    .replace("'", "\N{RIGHT DOUBLE QUOTATION MARK}"),
    "no quotes": GPP.replace("''", " ").replace("'", ""),
    "commas": GPP.replace("''", "', '").replace("828.758", "828.758,"),
    "tabs": GPP.replace(" '", "\t'").replace("FLOPS ", "FLOPS\t").replace("AI_L2 ", "  AI_L2\t\t"),
    "Windows": GPP.replace("\n", "\r\n"),
    "upper case": GPP.replace("memroofs", "MEMROOFS").replace("labels", "LABELS").replace("comp_roof_names", "Comp_Roof_Names"),
    "lower case": GPP.replace("AI_", "ai_").replace("FLOPS", "flops"),
    "GFLOPs": GPP.replace("FLOPS", "GFLOPs"),
    "DRAM": GPP.replace("HBM", "DRAM"),
    "colons": GPP.replace("memroofs ", "memroofs: ").replace("FLOPS ", "FLOPS = "),
    "comments": GPP.replace("828.758\n", "828.758   # GB/s, as 'L1' or \"L2\"\n"),
    "byte order mark": "\N{ZERO WIDTH NO-BREAK SPACE}" + GPP,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(tmp_path: Path, name: str) -> None:
    first = open_input(write(tmp_path, GPP))
    table = open_input(write(tmp_path, SPELLINGS[name], "other.txt"))
    assert isinstance(first, PointTable)
    assert isinstance(table, PointTable)
    assert table.warnings == ()
    assert [point.label for point in table.points] == [point.label for point in first.points]
    assert [(point.traffic, point.work) for point in table.points] == [(point.traffic, point.work) for point in first.points]
    assert [(roof.id, roof.value) for roof in table.roofs] == [(roof.id, roof.value) for roof in first.roofs]


@pytest.mark.parametrize(
    ("text", "traffic"),
    [
        ("memroofs 26.3\nmem_roof_names 'DRAM'\nAI 2\nFLOPS 10", {"dram": 5e9}),
        ("memroofs 26.3\nmem_roof_names 'L2'\nAI 2\nFLOPS 10", {"l2": 5e9}),
        ("memroofs 30 26.3\nmem_roof_names 'L2' 'DDR4'\nAI 2\nFLOPS 10", {"dram": 5e9}),
        ("memroofs 30\nmem_roof_names L3\nAI_L3 2\nAI_DRAM 5\nFLOPS 10", {"l3": 5e9, "dram": 2e9}),
        ("memroofs 30 9\nmem_roof_names HBM DDR\nAI_HBM 2\nAI_DDR 5\nFLOPS 10", {"mcdram": 5e9, "dram": 2e9}),
        ("memroofs 30\nmem_roof_names HBM\nAI_HBM 2\nAI_DRAM nan\nFLOPS 10", {"mcdram": 5e9}),
        ("AI 2\nFLOPS 10", {"dram": 5e9}),
    ],
)
def test_levels(tmp_path: Path, text: str, traffic: dict[str, float]) -> None:
    (point,) = points_of(write(tmp_path, text))
    assert point.traffic == traffic
    assert point.work == {"fp": 1e10}
    assert point.rates


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ("'DP FMA' 'DP no FMA'", ["fp64.fma", "fp64.nofma"]),
        ("'FP32 peak' 'FP64 peak'", ["fp32.fma", "fp64.fma"]),
        ("'Double, w/o FMA' 'HP'", ["fp16.fma", "fp64.nofma"]),
        ("'Tensor FP16' 'single non-FMA'", ["fp32.nofma", "tensor.fp16"]),
        ("'FMA' 'Div No-FMA'", ["fp.divide_nofma", "fp.fma"]),
        ("'Peak' 'scalar add'", ["fp.fma", "fp.scalar_add"]),
        ("'Theoretical FMA' 'Empirical FMA'", ["fp.fma"]),
    ],
)
def test_precisions_and_ceilings_of_roof_names(tmp_path: Path, names: str, ids: list[str]) -> None:
    table = open_input(write(tmp_path, f"comproofs 20 10\ncomp_roof_names {names}\nAI 1\nFLOPS 5\n"))
    assert isinstance(table, PointTable)
    assert sorted(roof.id for roof in table.roofs) == ids


def test_a_measured_roof_goes_before_a_theoretical_one(tmp_path: Path) -> None:
    text = "memroofs 900 828.758\nmem_roof_names 'Theoretical HBM' 'Empirical HBM'\nAI 1\nFLOPS 5\n"
    table = open_input(write(tmp_path, text))
    assert isinstance(table, PointTable)
    assert [(roof.value, roof.measured) for roof in table.roofs] == [(828.758e9, True)]
    assert "left out of the roofs: Theoretical HBM" in table.warnings[0]


def test_points_of_several_precisions(tmp_path: Path) -> None:
    roofs = "comproofs 20 10\ncomp_roof_names 'SP FMA' 'DP FMA'\n"
    single, unknown = points_of(write(tmp_path, f"{roofs}AI 1 1\nFLOPS 5 5\nlabels 'gemm FP32' 'other'\n"))
    assert list(single.work) == ["fp32"]
    assert list(unknown.work) == ["fp"]
    table = open_input(tmp_path / "gpp.txt")
    assert isinstance(table, PointTable)
    assert "several precisions" in table.warnings[0]


def test_unknown_lines_are_named(tmp_path: Path) -> None:
    table = open_input(write(tmp_path, f"{GPP}xlim 1 2\nFLOPS {numbers(published.GFLOPS)}\n"))
    assert isinstance(table, PointTable)
    assert ["'xlim'" in table.warnings[0], "'flops' again" in table.warnings[1]] == [True, True]


def test_ceilings_for_a_report(tmp_path: Path) -> None:
    """The roofs name no precision: they stand for FP64, and the roof says so."""
    published_report.write(tmp_path)
    ceilings = open_ceilings(write(tmp_path, ROOFS))
    assert ceilings.compute("fp32.fma") is None
    result = roofline(tmp_path / published_report.REPORT, ceilings)
    points = result.points.query("level == 'dram'")
    assert list(100 * points["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)
    (note,) = result.roofs.query("roof == 'fp64.fma' and origin == 'measured'")["notes"]
    assert note.startswith("taken as FP64")


def test_theoretical_roofs_are_no_measured_ceilings(tmp_path: Path) -> None:
    path = write(tmp_path, "memroofs 900\nmem_roof_names 'Theoretical HBM'\n")
    with pytest.raises(RooflineError, match="it holds no measured roof"):
        open_ceilings(path)


@pytest.mark.parametrize("source", ["file", "report", "report with ceilings"])
def test_there_and_back(tmp_path: Path, source: str) -> None:
    published_report.write(tmp_path)
    ceilings = [tmp_path / published_report.CEILINGS] if source == "report with ceilings" else None
    original = roofline(write(tmp_path, GPP) if source == "file" else tmp_path / published_report.REPORT, ceilings)
    back = roofline(write(tmp_path, render(original, "nersc").decode(), "back.txt"))
    columns = ["intensity", "performance", "compute_roof", "bandwidth_roof"]
    for level in ("l1", "l2", "dram"):
        one, other = (result.points[result.points["level"] == level][columns].to_numpy() for result in (original, back))
        assert one.shape == (6, 4)
        assert other == pytest.approx(one, rel=1e-12, nan_ok=True)
    assert set(back.points["precision"]) == set(original.points["precision"])
    # The ceilings file has no L1, whose roof is the theoretical one.
    origins = {"file": {"measured"}, "report": {"theoretical"}, "report with ceilings": {"measured", "theoretical"}}
    assert set(back.roofs["origin"]) == origins[source]


def test_what_its_own_scripts_can_read(tmp_path: Path) -> None:
    """They look for keywords anywhere in a line, split numbers at spaces and names at straight quotes, and know no comments."""
    lines = render(roofline(write(tmp_path, GPP)), "nersc").decode().splitlines()
    for word in ("memroofs", "mem_roof_names", "comproofs", "comp_roof_names", "AI_HBM", "AI_L2", "AI_L1", "FLOPS", "labels"):
        (line,) = (line for line in lines if word in line)
        if "names" in word or word == "labels":
            assert len([part for part in line.strip().split("'") if part not in ("", " ")]) > 1
        else:
            assert [float(part) for part in line.split()[1:]]


def test_the_precision_with_the_most_work_is_written() -> None:
    result = make_roofline(4, levels=("l2", "dram"))
    first = result.points.query("precision != 'mixed'").drop_duplicates(["kernel", "launch", "precision"])
    most = first.groupby("precision")["work"].sum().idxmax()
    text = render(result, "nersc").decode()
    assert str(most).rpartition(".")[2].upper() in text.splitlines()[0].upper()
    assert ("left out" in text.splitlines()[0]) == (first["precision"].nunique() > 1)


def test_quotes_in_kernel_names(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete(V100), "it's<`a'>"))
    text = render(roofline(source), "nersc").decode()
    assert len(points_of(write(tmp_path, text))) == 1


def test_two_gpus_cannot_share_a_file(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete(V100)), kernel(complete(H100)))
    with pytest.raises(RooflineError, match="Cannot render nersc: it holds the points of one GPU, not of 2"):
        render(roofline(source), "nersc")


def test_nothing_to_write() -> None:
    with pytest.raises(RooflineError, match="no kernel has a point"):
        render(make_roofline(0), "nersc")


BAD = {
    "word for a number": (GPP.replace("828.758", "fast"), "line 1 has fast where a positive number belongs"),
    "negative": (GPP.replace("828.758", "-1"), "line 1 has -1 where a positive number belongs"),
    "zero": (GPP.replace("2085.756683", "0"), "where a positive number belongs"),
    "infinite": (GPP.replace("828.758", "inf"), "where a positive number belongs"),
    "nan roof": (GPP.replace("828.758", "nan"), "a roof is nan"),
    "names lack": (GPP.replace(" 'HBM'", ""), "`mem_roof_names` has 2 entries and `memroofs` 3"),
    "no names": (GPP.replace("comp_roof_names", "# comp_roof_names"), "`comp_roof_names` has 0 entries and `comproofs` 2"),
    "labels lack": (GPP.replace("'nw=6'", ""), "`labels` has 5 entries and `FLOPS` 6"),
    "values lack": (GPP.replace(" 13.21154434", ""), "`AI_HBM` has 5 entries and `FLOPS` 6"),
    "no intensity": (f"{ROOFS}FLOPS 5\n", "it has FLOPS and no AI line"),
    "roofs only": (ROOFS, "it holds roofs and no points"),
    "which memory": ("memroofs 30 9\nmem_roof_names HBM DDR\nAI 2\nFLOPS 10\n", "`AI` does not say of which memory"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(tmp_path: Path, name: str) -> None:
    text, reason = BAD[name]
    path = write(tmp_path, text)
    with pytest.raises(RooflineError) as caught:
        open_input(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "memroofs are nice",
        "AI is everywhere\nFLOPS are not",
        "a,b\n1,2\n",
        '{"memroofs": [1]}',
        "FLOPS 5",
        "# memroofs 1 2",
    ],
)
def test_other_texts_are_not_taken(text: str) -> None:
    assert not recognises(text)
