"""bench/validate-on-gpu as a module."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "validate-on-gpu"
_LOADER = SourceFileLoader("validate_on_gpu", str(SCRIPT))
_SPEC = spec_from_loader(_LOADER.name, _LOADER)
assert _SPEC is not None
script = module_from_spec(_SPEC)
sys.modules[_LOADER.name] = script
_LOADER.exec_module(script)
