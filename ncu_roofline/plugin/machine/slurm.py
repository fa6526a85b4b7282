"""The ncu command as a job of Slurm: one line of srun, or a script for sbatch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ncu_roofline.plugin.machine.profile import as_text, quoted

RANK = "SLURM_PROCID"
"""The variable with the number of a task among all of its step."""
_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={job}
#SBATCH --nodes=1
#SBATCH --ntasks-per-node={tasks}
#SBATCH --gres=gpu:1
#SBATCH --time=00:30:00
# Adapt nodes, tasks, GPUs and time, and add account and partition as your site wants them.
# Load what the application needs here, and a module with ncu where it is not found by itself.
set -e

# Where DCGM holds the performance counters, pause it for as long: srun --ntasks-per-node=1 dcgmi profile --pause
# What stands in single quotes is meant as it is.
# shellcheck disable=SC2016
{step}

ncu-roofline render {name}.rank*.ncu-rep* -o {page}
"""


def step(words: Sequence[str], application: Sequence[str], rank: int | None) -> str:
    """A line that runs the ncu command ``words`` in every task, or in one, while the others run the ``application`` alone."""
    if rank is None:
        return as_text(["srun", *words])
    inside = f'if [ "${RANK}" = {rank} ]; then exec {as_text(words)}; else exec {as_text(application)}; fi'
    return as_text(["srun", "bash", "-c", inside])


def script(line: str, application: str, output: str, tasks: int = 1) -> str:
    """A script for sbatch around a `step` of so many ``tasks``, whose reports are called ``output`` and the rank.

    It renders them to a page.
    """
    job = re.sub(r"[^\w.-]+", "-", f"roofline-{Path(application).name}")
    return _SCRIPT.format(job=job, step=line, name=quoted(output), page=quoted(f"{output}.html"), tasks=tasks)
