"""`ncu-roofline check`: section files held against releases of Nsight Compute and chips."""

from __future__ import annotations

import glob
import json
import os
import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError, UsageError, explained
from ncu_roofline.base.files import pack_folder
from ncu_roofline.base.texts import printable
from ncu_roofline.cli.options import names
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.rendering.table import listing

if TYPE_CHECKING:
    from ncu_roofline.chips.fields import Release
    from ncu_roofline.plugin.check.chips import Passes, Target
    from ncu_roofline.plugin.check.section_rules import Checked

    Table = dict[str, dict[str, Passes | None]]

SUFFIX = ".section"
TOGETHER = "all together"
ONE_MORE = "total (hardware + patching); - unknown.  Nsight Compute itself reports one more."


def add_options(parser: ArgumentParser) -> None:
    """Which section files, for what, and how it is told."""
    about = "section files, globs or folders (default: the sections that come with ncu-roofline)"
    parser.add_argument("files", metavar="FILE", nargs="*", help=about)
    about = "chip (GH100), compute capability (9.0), product (H100) or all (default: one chip per compute capability)"
    parser.add_argument("--chip", metavar="CHIP,...", action="extend", type=names, default=[], help=about)
    about = "release to check for, as 2024.2 (default: every one from 2020.3 on)"
    parser.add_argument("--ncu", metavar="VERSION", default="", help=about)
    about = "print the replay passes of each file and of all together"
    parser.add_argument("--passes", action="store_true", help=about)
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def run(args: Namespace) -> int:
    """Check every file; exit code 1 if there is an error among the findings."""
    from ncu_roofline.plugin.check.chips import HOW_TO_GET, libraries, targets_of
    from ncu_roofline.plugin.check.section_rules import check_files

    release = _release(args.ncu)
    targets = targets_of(args.chip)
    checked = check_files(_paths(args.files), targets, release)
    if not libraries():
        say(f"ncu-roofline: {HOW_TO_GET}")
    table = _passes(checked, targets) if args.passes else {}
    own = not args.files
    write_text(_json(checked, targets, table) if args.json else _text(checked, targets, release, table, own))
    return 1 if any(found.severity == "error" for one in checked for found in one.findings) else 0


def _release(text: str) -> Release | None:
    from ncu_roofline.chips.fields import release_text
    from ncu_roofline.formats.sectionfile.section import RELEASES, release_of

    if not text:
        return None
    try:
        release = release_of(text)
    except ValueError as error:
        raise UsageError("Cannot use --ncu", text, str(error), "Give a release such as 2024.2.") from error
    if not RELEASES[0] <= release:
        reason = f"sections are checked for {release_text(RELEASES[0])} and later"
        raise UsageError("Cannot use --ncu", text, reason, "Give a later release.")
    return release


def _paths(arguments: Sequence[str]) -> list[str]:
    """Section files in order, each once: files, patterns, folders (as --section-folder: without what is below)."""
    found = {
        os.path.realpath(path): path for argument in arguments or [str(pack_folder("sections"))] for path in _named(argument)
    }
    return list(found.values())


def _named(argument: str) -> list[str]:
    if not argument:
        raise RooflineError("Cannot check", "''", "the name is empty", f"Give the path of a {SUFFIX} file.")
    if os.path.isdir(argument):
        with explained("Cannot check", argument, "Give a folder that you may read."):
            inside = sorted(os.path.join(argument, name) for name in os.listdir(argument) if name.endswith(SUFFIX))
        if not inside:
            raise RooflineError("Cannot check", argument, "the folder holds no section", f"Give a folder with {SUFFIX} files.")
        return inside
    if not os.path.exists(argument) and glob.has_magic(argument):
        matches = sorted(path for path in glob.glob(argument, recursive=True) if os.path.isfile(path))
        if not matches:
            raise RooflineError("Cannot check", argument, "no file matches the pattern", "Check the pattern.")
        return matches
    return [argument]


def _passes(checked: Sequence[Checked], targets: Sequence[Target]) -> Table:
    from ncu_roofline.plugin.check.section_rules import section_passes

    contents = {one.path: [one.content] for one in checked if one.content}
    if len(contents) > 1:
        contents[TOGETHER] = [one for group in contents.values() for one in group]
    return {name: {target.chip: section_passes(group, target) for target in targets} for name, group in contents.items()}


def _json(checked: Sequence[Checked], targets: Sequence[Target], table: Table) -> str:
    from ncu_roofline.chips.fields import release_text
    from ncu_roofline.plugin.check.chips import libraries
    from ncu_roofline.plugin.check.section_rules import loading_releases

    files = [
        {
            "path": one.path,
            "identifier": one.content.root.text("Identifier") if one.content else None,
            "releases": [release_text(release) for release in loading_releases(one.content.document)] if one.content else [],
        }
        for one in checked
    ]
    passes = {
        name: {
            chip: {"total": one.total, "hardware": one.hardware, "sass": one.sass} if one else None for chip, one in row.items()
        }
        for name, row in table.items()
    }
    document = {
        "files": files,
        "chips": [target.chip for target in targets],
        "libraries": [library.path for library in libraries()],
        "findings": [found.as_dict() for one in checked for found in one.findings],
        **({"passes": passes} if table else {}),
    }
    return json.dumps(document, indent=2)


def _text(checked: Sequence[Checked], targets: Sequence[Target], release: Release | None, table: Table, own: bool) -> str:
    """The findings; of our own sections only errors are listed, as no user has to act on what else is known of them."""
    from ncu_roofline.chips.fields import release_text
    from ncu_roofline.formats.sectionfile.section import RELEASES

    findings = [found for one in checked for found in one.findings]
    errors = [found for found in findings if found.severity == "error"]
    warnings = sum(found.severity == "warning" for found in findings)
    others = len(findings) - len(errors) - warnings
    notes = f", {_count(others, 'note')}" if others else ""
    span = release_text(release) if release else f"{release_text(RELEASES[0])} to {release_text(RELEASES[-1])}"
    lines = [printable(str(found)) for found in (errors if own else findings)]
    lines.append(
        f"{_count(len(checked), 'file')} checked for {_count(len(targets), 'chip')} and Nsight Compute {span}:"
        f" {_count(len(errors), 'error')}, {_count(warnings, 'warning')}{notes}"
    )
    if own:
        folder = str(pack_folder("sections"))
        names = ", ".join(os.path.basename(one.path).removesuffix(SUFFIX) for one in checked)
        lines.append(f"They are the sections that come with ncu-roofline, in {printable(folder)}: {names}")
        kinds = Counter(found.code for found in findings if found.severity != "error")
        if kinds:
            counts = ", ".join(f"{number} {code}" for code, number in sorted(kinds.items()))
            lines.append(f"Known of them, as one section serves many chips and releases: {counts}; listed by")
            lines.append(f"  ncu-roofline check {shlex.quote(folder)}")
    if table:
        rows = [
            {"": printable(os.path.basename(name)), **{chip: str(one) if one else "-" for chip, one in row.items()}}
            for name, row in table.items()
        ]
        lines += ["", "Replay passes", *listing(rows, header=str), ONE_MORE]
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
