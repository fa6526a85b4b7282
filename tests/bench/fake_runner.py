"""A benchmark program without a GPU: speaks the runner's protocol and plays a scenario.  Needs nothing but Python.

The scenario is a JSON file named by $FAKE_RUNNER:
  error      what `device` and `run` fail with (no driver)
  devices    what `device` prints, by index
  rows       what `list` prints
  ceilings   per id: rate (work per second), clock (MHz), noise (share), variants (name -> share of the rate), and calls: what
             happens at the first, second, ... run of it (the last goes on): a mapping with any of
             mode (crash, hang, garbage, error, short, wrong), text, scale, clock, drift (clocks of the first trials),
             outliers (how many trials take twice as long), noise
  calls      file in which the runs are counted and written down
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any


def trials(scenario: dict[str, Any], words: dict[str, str], number: int) -> list[dict[str, Any]]:
    """The lines of one run; ``number`` counts the runs of this ceiling from 0."""
    ceiling = scenario["ceilings"][words["ceiling"]]
    call = call_of(ceiling, number)
    rate = ceiling["rate"] * ceiling.get("variants", {}).get(words["variant"], 1.0) * call.get("scale", 1.0)
    clock, noise = call.get("clock", ceiling.get("clock", 1980)), call.get("noise", ceiling.get("noise", 0.0005))
    drift, seconds = call.get("drift", []), float(words["min-time-ms"]) / 1e3
    dice = random.Random(f"{words['ceiling']} {words['variant']} {number} {words['seed']}")
    lines = []
    count = int(words["trials"])
    late = set(range(count - call.get("outliers", 0), count))
    for trial in range(count):
        mhz = drift[trial] if trial < len(drift) else clock
        speed = rate * (mhz / clock if mhz and clock else 1.0) * (1 + noise * dice.uniform(-1, 1)) / (2 if trial in late else 1)
        lines.append({"trial": trial, "seconds": seconds, "work": speed * seconds, "sm_mhz": mhz})
        lines[-1]["checksum_ok"] = call.get("mode") != "wrong"
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
    words = {argv[i][2:]: argv[i + 1] for i in range(1, len(argv) - 1, 2)}
    if argv[0] == "list":
        for row in scenario["rows"]:
            say(row)
        return 0
    index = int(words["device"])
    if scenario.get("error") or index >= len(scenario["devices"]):
        say({"error": scenario.get("error", "cudaErrorInvalidDevice: invalid device ordinal")})
        return 2
    if argv[0] == "device":
        say({"index": index, **scenario["devices"][index]})
        return 0
    return play(scenario, words)


def play(scenario: dict[str, Any], words: dict[str, str]) -> int:
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
        print("Segmentation fault (core dumped)")
        return 0
    for line in trials(scenario, words, number):
        say(line)
        if call.get("pause"):
            time.sleep(call["pause"])
    if mode != "short":
        say({"done": True, "grid": 528, "block": 256})
    return 0


def count(scenario: dict[str, Any], words: dict[str, str]) -> int:
    """How often this ceiling ran before; writes this run down."""
    with open(scenario["calls"], "a+", encoding="utf-8") as stream:
        stream.seek(0)
        before = [json.loads(line) for line in stream]
        stream.write(json.dumps(words) + "\n")
    return sum(call["ceiling"] == words["ceiling"] for call in before)


def say(line: dict[str, Any]) -> None:
    """A line of JSON, at once."""
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
