"""Files of other profilers, cut and scrambled anywhere: a table comes out, or an error that we explain."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from tests import published
from tests.inputs import nvprof_logs, test_advisor, test_likwid

WHOLE = {
    "nvprof metrics": nvprof_logs.metrics(nvprof_logs.gpp_metrics(published.gpp_runs()[0])),
    "nvprof summary": nvprof_logs.summary({"k": (1.0, 2), "f(int, int)": (2.0, 1)}),
    "nvprof trace": nvprof_logs.trace([("k", 1e-6), ("k", 2e-6)], {"flop_count_dp": (1, 2)}),
    "likwid": test_likwid.GOOD,
    "advisor": test_advisor.GOOD,
    "advisor roofs": test_advisor.ROOFS,
}
SCRAPS = ('"', ",", "\n", "-", "e9", "\0", "é", "nan", "<", '""', "TABLE,", "\t")


@pytest.mark.parametrize("name", WHOLE)
def test_never_anything_but_a_table_or_an_explained_error(tmp_path: Path, name: str) -> None:
    whole, generator = WHOLE[name], random.Random(7)
    path = tmp_path / "damaged.csv"
    refused = []
    for number in range(150):
        start = generator.randrange(len(whole))
        cut = whole[:start] if number % 3 == 0 else whole[:start] + generator.choice(SCRAPS) + whole[start + number % 3 - 1 :]
        path.write_text(cut, encoding="utf-8")
        try:
            open_input(path)
        except RooflineError as error:
            refused.append(str(error))
    assert refused
    assert all(str(path) in sentence for sentence in refused)
