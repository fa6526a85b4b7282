"""What `COMMAND --help` shows: two examples, and the options that most people need; `--help-all` shows all options."""

from __future__ import annotations

_LAUNCHES = "kernel top ceilings"
_LOOKS = "json output force width table"
# Command: the options in sight where it has more than twelve, then two examples.
HELP: dict[str, tuple[str, str, str]] = {
    "demo": ("", "demo", "demo --out gallery --only compare"),
    "show": (
        f"json all notes by view precision level run {_LAUNCHES}",
        "show report.ncu-rep --ceilings auto",
        "show rank*.ncu-rep --kernel gemm --precision tensor",
    ),
    "render": (
        f"output force title preset by view precision level {_LAUNCHES}",
        "render report.ncu-rep -o roofline.html -o roofline.svg",
        "render nw*.ncu-rep --trajectory --preset column -o sweep.pdf",
    ),
    "source": (
        f"by rows all sort source-folder {_LAUNCHES} json output force",
        "source report.ncu-rep --kernel gemm",
        "source report.ncu-rep -o source.html",
    ),
    "explain": ("", "explain report.ncu-rep", "explain report.ncu-rep --precision tensor --level shared"),
    "compare": (
        f"against match times fail-if {_LAUNCHES} json output force table",
        "compare before.ncu-rep after.ncu-rep",
        "compare before.ncu-rep after.ncu-rep --fail-if 'time > 1.05 * baseline' -o compare.md",
    ),
    "budget": ("", "budget init report.ncu-rep -o budget.toml", "budget check report.ncu-rep --budget budget.toml"),
    "budget init": (
        "output force small kernel ceilings run",
        "budget init report.ncu-rep -o budget.toml",
        "budget init trace.json.gz -o budget.toml",
    ),
    "budget check": (
        "budget strict kernel ceilings run json output force table",
        "budget check report.ncu-rep --budget budget.toml",
        "budget check report.ncu-rep --budget budget.toml -o budget.md",
    ),
    "portability": (
        "precision level by kernel ceilings platforms application json output force title",
        "portability gpp-platforms.csv",
        "portability A100=a100.ncu-rep H100=h100.ncu-rep -o portability.md",
    ),
    "ranks": (
        f"rank by precision level {_LAUNCHES} {_LOOKS}",
        "ranks job/*.ncu-rep",
        "ranks job/ --by application --json",
    ),
    "advise": (
        "kernel longest top ceilings rules verbose all-findings all-rules json",
        "advise report.ncu-rep",
        "advise report.ncu-rep --rules my-rules --json",
    ),
    "annotate": ("", "annotate report.ncu-rep -o new.ncu-rep", "annotate report.ncu-rep --ceilings auto -o new.ncu-rep"),
    "check": ("", "check", "check My.section --chip 9.0 --ncu 2024.1 --passes"),
    "generate": ("", "generate --check", "generate --out sections-of-my-gpu --ceilings ceilings.json"),
    "bench": ("", "bench run -o ceilings.json", "bench compare before.json after.json"),
    "bench run": (
        "device only skip quick output no-picture force json budget sessions",
        "bench run -o ceilings.json",
        "bench run --device 1 --only dram,tensor --quick",
    ),
    "bench build": ("", "bench build", "bench build --arch 9.0 --apps"),
    "bench list": ("", "bench list", "bench list --arch 9.0"),
    "bench theory": ("", "bench theory", "bench theory --gpu A100 --json"),
    "bench merge": ("", "bench merge node*.json -o cluster.json", "bench merge a.json b.json --json"),
    "bench compare": ("", "bench compare before.json after.json", "bench compare before.json after.json --threshold 5%"),
    "bench draw": ("", "bench draw ceilings.json -o ceilings.svg", "bench draw ceilings.json -o ceilings.png --theme dark"),
    "list": ("", "list", "list precisions"),
    "schema": ("", "schema", "schema roofline"),
    "mcp": ("", "mcp", "mcp < requests"),
    "guide": ("", "guide", "guide sets"),
    "install": ("", "install", "install --ncu 2024.1 --ceilings ceilings.json --dry-run"),
    "uninstall": ("", "uninstall", "uninstall --dry-run"),
    "doctor": ("", "doctor", "doctor --json"),
    "profile": ("", "profile -- ./app input.dat", "profile --kernel gemm --light -o roofline.html -- ./app"),
    "completion": ("", "completion bash", "completion zsh"),
}
