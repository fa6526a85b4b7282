"""Reports that are passes of one run, beside tables (for which see `passes.readings` and `passes.session`)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.passes import of_one_run
from ncu_roofline.model import roofline
from tests import factory
from tests.cli.command import Command


def test_reports_are_passes_as_well_with_their_opcodes(tmp_path: Path, run: Command) -> None:
    about, counted = factory.A100, factory.opcodes(DFMA=100.0)
    kernels = [
        factory.kernel(about | factory.timing() | factory.flops("f", fma=1000), instances=counted),
        factory.kernel(about | factory.timing(1.5e-3) | factory.traffic(dram=4000)),
    ]
    paths = [str(factory.report(tmp_path / f"{number}.ncu-rep", one)) for number, one in enumerate(kernels)]
    merged, _ = of_one_run(paths, open_input)
    assert merged is not None
    works = [{name: work.tolist() for name, work in roofline(one).work.items()} for one in (merged, paths[0])]
    assert works[0] == works[1]
    (dot, *_) = roofline(merged).points.query("precision == 'fp32'").to_dict("records")
    assert (dot["work"], dot["traffic"], dot["seconds"]) == (2000, 4000, 1e-3)
    assert "up to 33.3 % from those of others" in run("show", *paths).err
    with pytest.raises(RooflineError, match="Cannot read"):
        of_one_run([paths[0], str(tmp_path / "absent")], open_input)


def test_no_two_real_reports_are_passes(real_reports: dict[str, Path]) -> None:
    pairs = list(combinations(sorted(map(str, real_reports.values())), 2))
    assert [pair for pair in pairs[::25] if of_one_run(pair, open_input)[0]] == []
