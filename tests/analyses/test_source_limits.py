"""The source view of launches that are larger than code can be: refused in a sentence, or shown with the counts that remain."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.analyses.source import build
from ncu_roofline.analyses.source.build import source_roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import sass as code_limits
from ncu_roofline.formats.report import Code, CodeFunction, read_report
from ncu_roofline.formats.sass import cubin
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.model.work import placed
from tests import factory
from tests.analyses.source_made import BASE, device, made_report
from tests.counted import steps
from tests.sass.made import EXIT, FFMA, made_cubin

GEMM = "_Z4gemmPKfS0_Pfi"


@pytest.fixture(autouse=True)
def _read_anew() -> None:
    cubin.module_of.cache_clear()


def report(path: Path, functions: dict[str, bytes], counts: int, launches: int = 1) -> Path:
    """A report whose launches have these functions behind each other, and counts at so many addresses."""
    places, place = [], BASE
    for name, content in functions.items():
        places.append(CodeFunction(name, place))
        place += len(content)
    module = Code(made_cubin(functions), (), tuple(places))
    listed = factory.by_address(BASE, inst_executed=[1.0] * counts)
    scalars = {**device("80"), **factory.timing()}
    first = next(iter(functions))
    kernels = [
        factory.kernel(scalars, f"k{number}", mangled_name=first, code=module, instances=listed) for number in range(launches)
    ]
    return factory.report(path, *kernels)


def test_code_that_is_too_large_leaves_its_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report(tmp_path / "made.ncu-rep", {"k": FFMA * 99 + EXIT}, 8)
    assert len(source_roofline(path).instructions) == 100
    monkeypatch.setattr(code_limits, "INSTRUCTIONS", 99)
    monkeypatch.setattr(cubin, "decode", None)  # not even begun
    found = source_roofline(path)
    assert len(found.instructions) == 8
    assert found.instructions["executed"].sum() == 8
    assert any("it has 100 instructions, and no more than 99 are read; counts stand by address" in one for one in found.notes)


def test_counts_outside_of_the_code_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report(tmp_path / "made.ncu-rep", {"k": FFMA * 9 + EXIT}, 15)
    monkeypatch.setattr(code_limits, "INSTRUCTIONS", 15)
    assert not source_roofline(path).notes
    monkeypatch.setattr(code_limits, "INSTRUCTIONS", 14)
    assert any("it has 15 instructions" in one for one in source_roofline(path).notes)


def test_more_functions_than_a_launch_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report(tmp_path / "made.ncu-rep", {f"f{number}": EXIT for number in range(5)}, 5)
    monkeypatch.setattr(code_limits, "FUNCTIONS", 5)
    assert len(source_roofline(path).functions) == 5
    monkeypatch.setattr(code_limits, "FUNCTIONS", 4)
    assert any("it has 5 functions, and no more than 4 are read" in one for one in source_roofline(path).notes)


def test_more_addresses_than_code_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report(tmp_path / "made.ncu-rep", {"k": EXIT}, 30)
    monkeypatch.setattr(build, "INSTRUCTIONS", 29)
    with pytest.raises(RooflineError, match="launch 0 has counts at 30 addresses, and no more than 29 are shown") as error:
        source_roofline(path)
    assert str(path) in str(error.value)


def test_more_inlined_levels_than_code_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM)
    monkeypatch.setattr(cubin, "INLINED_LEVELS", 50)
    found = source_roofline(path)
    assert any("more than 50 levels of inlined code" in one for one in found.notes)
    assert (found.lines["line"] < 0).all()
    assert found.instructions["executed"].sum() > 0


def test_many_functions_are_placed_in_proportion(tmp_path: Path) -> None:
    def place(count: int) -> int:
        functions = {f"f{number}": EXIT for number in range(count)}
        with read_report(report(tmp_path / f"{count}.ncu-rep", functions, count)) as opened:
            kernel = opened.kernels[0]
            module = kernel.code
            assert module is not None
            cubin = Cubin(module.cubin)
            addresses = [BASE + 16 * number for number in range(count)]
            assert len(placed(kernel, module, cubin, addresses)) == count
            return steps(lambda: placed(kernel, module, cubin, addresses))

    assert place(400) < 5 * place(100)


def test_unread_sources_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ncu_roofline.formats.report import metrics as report_code

    path = made_report(tmp_path / "made.ncu-rep", "80", GEMM)
    monkeypatch.setattr(report_code, "IMPORTED_BYTES", 10)
    assert any("sources of a module are read up to 64 MB: without" in one for one in source_roofline(path).notes)


def test_all_functions_are_disassembled_in_two_steps(tmp_path: Path) -> None:
    path = report(tmp_path / "made.ncu-rep", {f"f{number}": EXIT for number in range(50)}, 50)
    sizes = []

    def texts(codes: object, _: object) -> object:
        assert isinstance(codes, list)
        sizes.append(len(codes))
        return [{0: "EXIT"} for _ in codes]

    found = source_roofline(path, disassemble=texts)  # type: ignore[arg-type]
    assert sizes == [1, 49]
    assert (found.instructions["sass"] == "EXIT").all()
