"""The options of `ncu-roofline render` for the paper of a picture: what they do, and where they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.cli import main

REPORT = str(Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code, and what is said on standard error in one line."""
    try:
        code = main(["render", REPORT, *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, " ".join(capsys.readouterr().err.split())


def test_a_png_of_the_width_and_dots_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "x.png"
    asked = ("--width", "84mm", "--height", "7cm", "--font", "7", "--dpi", "200", "--size", "time")
    assert run(capsys, "-o", str(picture), *asked)[0] == 0
    data = picture.read_bytes()
    assert [int.from_bytes(data[place : place + 4], "big") for place in (16, 20)] == [661, 551]


@pytest.mark.parametrize("view", ["time", "instruction"])
def test_presets_go_with_every_view(view: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    assert run(capsys, "-o", str(picture), "--view", view, "--preset", "column")[0] == 0
    assert b'width="237.6pt"' in picture.read_bytes()


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("x.png", ("--width", "0in"), "--width: 0 is not between 1.5 and 60 inches"),
        ("x.png", ("--width=",), "argument --width: '' is no length"),
        ("x.png", ("--width", "wide"), "--width: 'wide' is not a length such as 3.3in"),
        ("x.png", ("--font", "5"), "--font: 5 is not between 6 and 72 points"),
        ("x.png", ("--font", "nan"), "--font: nan is not between"),
        ("x.png", ("--dpi", "1e9"), "--dpi: 1e+09 is not between 36 and 2400"),
        ("x.png", ("--height", "1.5in", "--font", "14"), "--height: 1.5in has no room for the picture"),
        ("x.png", ("--preset", "poster"), "invalid choice: 'poster'"),
        ("x.html", ("--preset", "column"), "Cannot use --preset: --view roofline as html has no use for it"),
        ("x.txt", ("--width", "3in"), "Cannot use --width: --view roofline as text has no use for it"),
        ("x.png", ("--view", "time", "--size", "time"), "Cannot use --size: --view time as png has no use for it"),
    ],
)
def test_refusals(name: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, text = run(capsys, "-o", str(tmp_path / name), *words)
    assert code == 2
    assert said in text
    assert not (tmp_path / name).exists()
