"""`ncu-roofline check` and `generate`: section files held against releases and chips; those of the pack, and its rules."""

from __future__ import annotations

import glob
import json
import os
import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ncu_roofline.base.errors import RooflineError, UsageError, explained
from ncu_roofline.base.files import pack_folder
from ncu_roofline.base.texts import plural, printable
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import Release, release_text
from ncu_roofline.cli.options import names
from ncu_roofline.cli.outputs import AUTO, check_unread, say, warn, write_text
from ncu_roofline.formats.ceilings import CPU, read_ceilings
from ncu_roofline.formats.sectionfile.section import RELEASES, release_of
from ncu_roofline.plugin.check.chips import HOW_TO_GET, Passes, Target, libraries, targets_of
from ncu_roofline.plugin.check.section_rules import Checked, check_files, loading_releases, section_passes
from ncu_roofline.plugin.generate.lowering import BASE, dialect_of
from ncu_roofline.plugin.generate.rules import differences, render_rules, write_files
from ncu_roofline.plugin.generate.sections import render_sections
from ncu_roofline.rendering.table import listing

Table = dict[str, dict[str, Passes | None]]
SUFFIX = ".section"
DEFAULT_TYPE = "fp16"


def add_check(parser: ArgumentParser) -> None:
    """Which section files, for what, and how it is told."""
    about = "section files, globs or folders (default: the sections that come with ncu-roofline)"
    parser.add_argument("files", metavar="FILE", nargs="*", help=about)
    about = "chip (GH100), compute capability (9.0), product (H100) or all (default: one chip per compute capability)"
    parser.add_argument("--chip", metavar="CHIP,...", action="extend", type=names, default=[], help=about)
    about = "release to check for, as 2024.2 (default: every one from 2020.3 on)"
    parser.add_argument("--ncu", metavar="VERSION", default="", help=about)
    parser.add_argument("--passes", action="store_true", help="print the replay passes of each file and of all together")
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def run_check(args: Namespace) -> int:
    """Check every file; exit code 1 if there is an error among the findings."""
    release = _release(args.ncu) if args.ncu else None
    targets = targets_of(args.chip)
    paths = [path for argument in args.files or [str(pack_folder("sections"))] for path in _named(argument)]
    checked = check_files({os.path.realpath(path): path for path in paths}.values(), targets, release)
    if not libraries():
        say(f"ncu-roofline: {HOW_TO_GET}")
    table: Table = {}
    if args.passes:
        contents = {one.path: [one.content] for one in checked if one.content}
        if len(contents) > 1:
            contents["all together"] = [one for group in contents.values() for one in group]
        for name, group in contents.items():
            table[name] = {target.chip: section_passes(group, target) for target in targets}
    write_text(_json(checked, targets, table) if args.json else _text(checked, targets, release, table, not args.files))
    return 1 if any(found.severity == "error" for one in checked for found in one.findings) else 0


def _release(text: str) -> Release:
    try:
        release = release_of(text)
    except ValueError as error:
        raise UsageError("Cannot use --ncu", text, str(error), "Give a release such as 2024.2.") from error
    if not RELEASES[0] <= release:
        reason = f"sections are checked for {release_text(RELEASES[0])} and later"
        raise UsageError("Cannot use --ncu", text, reason, "Give a later release.")
    return release


def _named(argument: str) -> list[str]:
    """Section files in order: a file, a pattern, or a folder (as --section-folder: without what is below)."""
    if not argument:
        raise RooflineError("Cannot check", "''", "the name is empty", f"Give the path of a {SUFFIX} file.")
    found, lacking = [argument], ""
    if os.path.isdir(argument):
        with explained("Cannot check", argument, "Give a folder that you may read."):
            found = sorted(os.path.join(argument, name) for name in os.listdir(argument) if name.endswith(SUFFIX))
        lacking = "the folder holds no section"
    elif not os.path.exists(argument) and glob.has_magic(argument):
        found = sorted(path for path in glob.glob(argument, recursive=True) if os.path.isfile(path))
        lacking = "no file matches the pattern"
    if not found:
        raise RooflineError("Cannot check", argument, lacking, f"Give the path of a {SUFFIX} file, or a folder of them.")
    return found


def _json(checked: Sequence[Checked], targets: Sequence[Target], table: Table) -> str:
    files = []
    for path, _, content in checked:
        releases = [release_text(release) for release in loading_releases(content.document)] if content else []
        files.append({"path": path, "identifier": content.root.text("Identifier") if content else None, "releases": releases})
    passes = {}
    for name, row in table.items():
        found = row.items()
        passes[name] = {chip: {"total": one.total, **one._asdict()} if one else None for chip, one in found}
    document = {
        "files": files,
        "chips": [target.chip for target in targets],
        "libraries": [library.path for library in libraries()],
        "findings": [found._asdict() for one in checked for found in one.findings],
        **({"passes": passes} if table else {}),
    }
    return json.dumps(document, indent=2)


def _text(checked: Sequence[Checked], targets: Sequence[Target], release: Release | None, table: Table, own: bool) -> str:
    """The findings; of our own sections only errors are listed, as no user has to act on what else is known of them."""
    findings = [found for one in checked for found in one.findings]
    number = Counter(found.severity for found in findings)
    span = release_text(release) if release else f"{release_text(RELEASES[0])} to {release_text(RELEASES[-1])}"
    lines = [printable(str(found)) for found in findings if not own or found.severity == "error"]
    scope = f"{plural(len(checked), 'file')} checked for {plural(len(targets), 'chip')} and Nsight Compute {span}"
    if own:
        folder = str(pack_folder("sections"))
        names = ", ".join(os.path.basename(one.path).removesuffix(SUFFIX) for one in checked)
        lines.append(f"{plural(number['error'], 'problem')}: {scope}")
        lines.append(f"They are the sections that come with ncu-roofline, in {printable(folder)}: {names}")
        if len(findings) > number["error"]:
            lines.append("One section serves many chips and releases; what some of these lack is listed by")
            lines.append(f"  ncu-roofline check {shlex.quote(folder)}")
    else:
        lines.append(f"{scope}: {plural(number['error'], 'error')}, {plural(number['warning'], 'warning')}")
    if table:
        cells = [{chip: str(one) if one else "-" for chip, one in row.items()} for row in table.values()]
        rows = [{"": printable(os.path.basename(name)), **row} for name, row in zip(table, cells, strict=True)]
        about = "total (hardware + patching); - unknown.  Nsight Compute itself reports one more."
        lines += ["", "Replay passes", *listing(rows, header=str), about]
    return "\n".join(lines)


def add_generate(parser: ArgumentParser) -> None:
    """What to generate, for whom and where."""
    about = "write DIR/sections and DIR/rules (default: the pack's own)"
    parser.add_argument("-o", "--out", metavar="DIR", default="", help=about)
    about = "for this Nsight Compute (default: what every release from 2020.3 loads)"
    parser.add_argument("--ncu", metavar="VERSION", default="", help=about)
    about = "draw these measured ceilings beside the theoretical roofs"
    parser.add_argument("--ceilings", metavar="FILE", default="", help=about)
    about = "measured roofs follow the clock that a kernel is profiled at"
    parser.add_argument("--clock-consistent", action="store_true", help=about)
    about = "source type of the tensor section with few passes (default: %(default)s)"
    parser.add_argument("--tensor", metavar="TYPE", default=DEFAULT_TYPE, help=about)
    about = "also draw the dots of a level outside the chain: system (host memory)"
    parser.add_argument("--level", metavar="LEVEL", action="append", default=[], help=about)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name every file that differs")
    parser.add_argument("--force", action="store_true", help="overwrite files that were not generated")


def run_generate(args: Namespace) -> int:
    """Write both folders, or with --check compare them; 1 if a file differs."""
    out = Path(args.out) if args.out else pack_folder("sections").parent
    special = args.ncu or args.ceilings or args.level or args.tensor != DEFAULT_TYPE
    # Files for one release or GPU never replace the general ones, and an installed package is no place to write to.
    if not args.out and (special or (out.name == "data" and not args.check)):
        reason = "files for one release or GPU do not replace the pack's" if special else "the installed pack is not changed"
        raise UsageError("Cannot generate into", out, reason, "Name a folder with --out.")
    folders = {out / name: texts for name, texts in _render(args).items()}  # all of it before anything is written
    if args.check:
        wrong = [line for folder, texts in folders.items() for line in differences(folder, texts)]
        if wrong:
            warn([*wrong, "run `ncu-roofline generate` with the same options to bring them up to date"])
            return 1
        write_text(f"{sum(map(len, folders.values()))} files in {out} are as generated")
        return 0
    for path in (folder / name for folder, texts in folders.items() for name in texts):
        check_unread(str(path), [args.ceilings] if args.ceilings else [])
    paths = [path for folder, texts in folders.items() for path in write_files(folder, texts, force=args.force)]
    write_text("\n".join(map(str, paths)))
    return 0


def _render(args: Namespace) -> dict[str, dict[str, str]]:
    if not args.tensor:
        raise UsageError("Cannot count the tensor type", "''", "its name is empty", "Leave out --tensor, or name a type.")
    if args.clock_consistent and not args.ceilings:
        raise UsageError("Cannot use", "--clock-consistent", "there are no measured roofs", "Name them with --ceilings FILE.")
    if args.ceilings == AUTO:
        reason = "it goes by the GPU of a report, and there is none here"
        raise UsageError("Cannot use --ceilings", AUTO, reason, "Name a file.")
    known = [level.id for level in load_spec().levels if level.on_request]
    for name in set(args.level) - set(known):
        raise UsageError("Cannot draw the level", name, f"levels outside the chain are {', '.join(known)}", "Name one of them.")
    dialect = dialect_of(args.ncu) if args.ncu else BASE
    ceilings = read_ceilings(args.ceilings) if args.ceilings else None
    if ceilings and ceilings.kind == CPU:
        say(f"ncu-roofline: {ceilings.path} holds ceilings of a CPU, which sections and rules for GPUs do not draw")
    options = {"clock_consistent": args.clock_consistent, "light_type": args.tensor, "aside": tuple(args.level)}
    sections = render_sections(dialect, ceilings, **options)
    return {"sections": sections, "rules": render_rules(dialect, [ceilings] if ceilings else [])}
