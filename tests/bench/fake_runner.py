"""A benchmark program without a GPU: speaks the runner's protocol and plays a scenario.  Needs nothing but Python.

The scenario is a JSON file named by $FAKE_RUNNER:
  error      what all but `list` fail with (no driver)
  devices    what `devices` prints, by index
  start      how long a context takes (s)
  rows       what `list` prints
  ceilings   per id: rate (work per second), clock (MHz), noise (share), variants (name -> share of the rate), rested (how
             much higher clock and rate are where trials come after pauses), and calls: what happens at the first, second, ...
             run of it (the last goes on): a mapping with any of
             mode (crash, hang, garbage, error, fatal, short, wrong), text, host and late (the host's time over the GPU's, of
             the first `late` trials or of all), scale, clock, drift (clocks of the first trials), outliers (how many trials
             take twice as long), noise, pause (s of real time after each trial), launch (what else the last line says)
  calls      file in which the runs are counted and written down, each with the process that ran it
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
from typing import Any


def trials(scenario: dict[str, Any], words: dict[str, str], number: int, begin: float) -> list[dict[str, Any]]:
    """The lines of one run that begins at a time; ``number`` counts the runs of this ceiling from 0."""
    ceiling = scenario["ceilings"][words["ceiling"]]
    call = call_of(ceiling, number)
    rate = ceiling["rate"] * ceiling.get("variants", {}).get(words["variant"], 1.0) * call.get("scale", 1.0)
    clock, noise = call.get("clock", ceiling.get("clock", 1980)), call.get("noise", ceiling.get("noise", 0.0005))
    drift, seconds, pause = call.get("drift", []), float(words["min-time-ms"]) / 1e3, float(words.get("pause-ms", 0)) / 1e3
    if pause:
        clock, rate = clock * ceiling.get("rested", 1.0), rate * ceiling.get("rested", 1.0)
    dice = random.Random(f"{words['ceiling']} {words['variant']} {number} {words['seed']}")
    lines = []
    count = int(words["trials"])
    slow = set(range(count - call.get("outliers", 0), count))
    for trial in range(count):
        mhz = drift[trial] if trial < len(drift) else clock
        speed = rate * (mhz / clock if mhz and clock else 1.0) * (1 + noise * dice.uniform(-1, 1)) / (2 if trial in slow else 1)
        lines.append({"trial": trial, "seconds": seconds, "work": speed * seconds, "sm_mhz": mhz})
        lines[-1]["checksum_ok"] = call.get("mode") != "wrong"
        begin += pause
        lines[-1]["begin"] = begin
        begin += seconds * (call.get("host", 1.0) if trial < call.get("late", count) else 1.0)
        lines[-1]["end"] = begin
    return lines


def call_of(ceiling: dict[str, Any], number: int) -> dict[str, Any]:
    """What happens at the run of this number."""
    calls = ceiling.get("calls") or [{}]
    call: dict[str, Any] = calls[min(number, len(calls) - 1)]
    return call


def main(argv: list[str]) -> int:
    """The program."""
    with open(os.environ["FAKE_RUNNER"], encoding="utf-8") as stream:
        scenario = json.load(stream)
    if argv[0] == "list":
        for row in scenario["rows"]:
            say(row)
        return 0
    if scenario.get("error"):
        say({"error": scenario["error"]})
        return 2
    if argv[0] == "devices":
        for index, device in enumerate(scenario["devices"]):
            say({"index": index, **device})
        return 0
    words = pairs(argv[1:])
    if argv[0] == "run":
        return play(scenario, words)
    time.sleep(scenario.get("start", 0.0))
    for line in sys.stdin:
        if line == "stop\n":
            continue
        code = play(scenario, {**words, **pairs(line.split())}, may_stop=True)
        if code not in (0, 1):
            return code
    return 0


def pairs(words: list[str]) -> dict[str, str]:
    """Options and their values."""
    return {words[i][2:]: words[i + 1] for i in range(0, len(words) - 1, 2)}


def play(scenario: dict[str, Any], words: dict[str, str], may_stop: bool = False) -> int:
    """One run, good or bad."""
    number = count(scenario, words)
    call = call_of(scenario["ceilings"][words["ceiling"]], number)
    mode = call.get("mode", "ok")
    if mode == "error":
        say({"error": call.get("text", "out of memory")})
        return 1
    if mode == "crash":
        print("CUDA error: an illegal memory access was encountered", file=sys.stderr)
        os.abort() if call.get("text") == "abort" else sys.exit(3)
    if mode == "hang":
        time.sleep(60)
    if mode == "garbage":
        print("Segmentation fault (core dumped)", flush=True)
        return 0
    if mode == "fatal":
        say({"error": call.get("text", "an illegal memory access was encountered"), "fatal": True})
        return 3
    for line in trials(scenario, words, number, time.monotonic()):
        say(line)
        if call.get("pause"):
            time.sleep(call["pause"])
        if may_stop and select.select([sys.stdin], [], [], 0)[0] and sys.stdin.readline() == "stop\n":
            break
    if mode == "short":
        sys.exit(0)
    say({"done": True, "grid": 528, "block": 256, "trips": 1000, **call.get("launch", {})})
    return 0


def count(scenario: dict[str, Any], words: dict[str, str]) -> int:
    """How often this ceiling ran before; writes this run down."""
    with open(scenario["calls"], "a+", encoding="utf-8") as stream:
        stream.seek(0)
        before = [json.loads(line) for line in stream]
        stream.write(json.dumps({**words, "process": os.getpid()}) + "\n")
    return sum(call["ceiling"] == words["ceiling"] for call in before)


def say(line: dict[str, Any]) -> None:
    """A line of JSON, at once."""
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
