"""Programs that stand in for ncu and nvidia-smi, and a machine to run them on."""

from __future__ import annotations

import sys
from pathlib import Path

from ncu_roofline.plugin.machine.machine import Machine
from tests.report.frames import packed

NCU = r'''#!{python}
"""Lists sections as ncu does, deploys "stock" files at its first start, runs applications; FAKE_NCU says what goes wrong."""
import csv, glob, json, os, shutil, subprocess, sys

VERSION, HERE = "{version}", os.path.dirname(os.path.abspath(__file__))
scenario, words = os.environ.get("FAKE_NCU", ""), sys.argv[1:]
with open(os.path.join(HERE, "calls"), "a") as stream:
    stream.write(json.dumps(words) + "\n")
if "--version" in words:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion " + VERSION + " (build 1) (public-release)")
    sys.exit(0)
folders = [words[n + 1] for n, word in enumerate(words) if word == "--section-folder"]


def where():
    if folders:
        return folders
    if os.environ.get("NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT") == "1":
        return [os.path.join(HERE, "sections")]
    vendor = os.path.join(os.environ["HOME"], "Documents", "NVIDIA Nsight Compute")
    folder = os.path.join(vendor, ".".join(VERSION.split(".")[:3]), "Sections")
    if not os.path.isdir(folder):
        shutil.copytree(os.path.join(HERE, "sections"), folder)
    return [folder]


def table(suffix, header):
    out = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.writerow(header)
    errors = []
    for folder in where():
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*" + suffix), recursive=True)):
            if suffix == ".py" and "def get_identifier" not in open(path).read():
                continue  # what is no rule is left out without a word
            if scenario == "reject" and os.path.basename(path).startswith("Hierarchical"):
                errors.append((path, 'Error: Line=3 Column=0 Message type "X" has no field named "Y".'))
            else:
                out.writerow([os.path.basename(path)[: -len(suffix)], "name", "no", path])
    if errors:
        print("\n" + '"Filename","Error"')
        for error in errors:
            print('"%s","%s\n"' % error)
    sys.exit(0)


if "--list-sections" in words:
    table(".section", ["Identifier", "Display Name", "Enabled", "Filename"])
if "--list-rules" in words:
    table(".py", ["Identifier", "Display Name", "Description", "Filename"])
n = 0
while n < len(words) and words[n].startswith("-"):
    n += 1 if words[n] == "-f" else 2
with open(os.path.join(HERE, "seen"), "w") as stream:
    json.dump(dict(folders=[sorted(os.listdir(folder)) for folder in folders]), stream)
log = open(words[words.index("--log-file") + 1], "w")


def say(text):
    log.write(text + "\n")
    log.flush()


if scenario == "no driver":
    print("==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).", file=sys.stderr)
    say("==ERROR== The application returned an error code (1).")
    sys.exit(1)
say("==PROF== Connected to process 1 (/app)")
code, failures = subprocess.call(words[n:]), {
    "permission": (1, "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"),
    "busy": (9, "Profiling failed because a driver resource was unavailable."),
    "mystery": (11, "The moon is in the wrong house."),
}
if code:
    say("==ERROR== The application returned an error code (%d)." % code)
elif scenario in failures:
    code, text = failures[scenario]
    say("==ERROR== " + text)
if scenario == "no kernel" or scenario in failures or (code and scenario != "crash late"):
    say("==WARNING== No kernels were profiled.")
    sys.exit(code)
say('==PROF== Profiling "kernel" - 0: 0%....50%....100% - 4 passes')
name = words[words.index("-o") + 1]
if not name.endswith((".ncu-rep", ".ncu-repz")):
    name += ".ncu-repz" if tuple(map(int, VERSION.split(".")[:2])) >= (2026, 3) else ".ncu-rep"
shutil.copy(r"{compressed}" if name.endswith("z") else r"{report}", name)
say("==PROF== Disconnected from process 1")
sys.exit(code)
'''

SMI = r"""#!{python}
import sys
query = next((word for word in sys.argv if word.startswith("--query-gpu=")), "").partition("=")[2].split(",")
for row in {rows!r}:
    print(", ".join(row[field] for field in query))
"""

H100 = {
    "index": "0",
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "driver_version": "550.54.15",
    "compute_cap": "9.0",
    "mig.mode.current": "Disabled",
}
DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json"


def set_env(machine: Machine, **values: str) -> None:
    """Changes its environment in place."""
    machine.environ.update(values)  # type: ignore[attr-defined]


def program(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_ncu(folder: Path, version: str = "2024.2.0.0") -> Path:
    """An ncu with one stock section and rule."""
    stock = folder / "sections"
    stock.mkdir(parents=True)
    (stock / "Stock.section").write_text('Identifier: "Stock"\n', encoding="utf-8")
    (stock / "StockRule.py").write_text("def apply(handle): pass\n", encoding="utf-8")
    compressed = folder / "report.zst"
    compressed.write_bytes(packed(REPORT.read_bytes()))
    text = NCU.replace("{python}", sys.executable).replace("{version}", version)
    text = text.replace("{report}", str(REPORT)).replace("{compressed}", str(compressed))
    return program(folder / "ncu", text)


def fake_smi(folder: Path, rows: list[dict[str, str]]) -> Path:
    """An nvidia-smi that lists some GPUs."""
    return program(folder / "nvidia-smi", SMI.replace("{python}", sys.executable).replace("{rows!r}", repr(rows)))


def fake_nvcc(folder: Path, release: str = "12.4", code: int = 0) -> Path:
    """An nvcc that says its release."""
    said = f"Cuda compilation tools, release {release}, V{release}.131"
    return program(folder / "nvcc", f"#!/bin/sh\necho '{said}'\nexit {code}\n")


def bare_machine(tmp_path: Path, **environ: str) -> Machine:
    """A machine with an empty root, a home folder and nothing on its PATH but what ``environ`` says."""
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir(exist_ok=True)
    root.mkdir(exist_ok=True)
    return Machine({"HOME": str(home), "PATH": str(tmp_path / "bin"), **environ}, "linux", root)


def with_driver(machine: Machine, admin_only: str = "0") -> Machine:
    """The machine with the files of a loaded driver."""
    folder = machine.path("/proc/driver/nvidia")
    folder.mkdir(parents=True, exist_ok=True)
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    (folder / "version").write_text(text, encoding="utf-8")
    (folder / "params").write_text(f"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {admin_only}\n", encoding="utf-8")
    return machine


def tree(folder: Path) -> dict[str, bytes]:
    """Every file (with its content) and folder below ``folder``."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}
