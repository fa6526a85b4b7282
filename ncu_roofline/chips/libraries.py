"""Headers of toolkits and libraries: a line of theirs tells less of where something is than the line that uses it.

The source view calls it, and the rule generator puts the source of this file, without annotations, into the rules.
"""

from __future__ import annotations

import re

# Where CUDA, compilers, libraries and package managers put them, and names of theirs; only headers, as kernels may be theirs.
LIBRARY_FOLDER = re.compile(
    r"(?:^|/)(?:usr/(?:local/)?include|usr/local/cuda[^/]*|cuda[-.\d]*/(?:include|std|targets|v\d[.\d]*/include)|opt/nvidia|"
    r"crt|cooperative_groups|cub|cute|cutlass|libcudacxx|nv|thrust|Kokkos|(?:dist|site)-packages|\.julia/packages)/",
    re.IGNORECASE,
)
LIBRARY_NAME = re.compile(r"(?:mma|sm_\d\w*|cuda_(?:bf|fp)\d+|cooperative_groups|(?:math|device)_functions)\.(?:h|hpp)$")
HEADER_ENDS = ("", "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tcc", "tpp", "jl", "py")


def of_library(path: str) -> bool:
    """Whether a source file is a header of a toolkit or library."""
    path = path.replace("\\", "/")
    name = path.split("/")[-1]
    if path == "./" + name and name.endswith(".jl"):  # Julia's own
        return True
    is_header = name.partition(".")[2].lower() in HEADER_ENDS
    return is_header and (LIBRARY_FOLDER.search(path) is not None or LIBRARY_NAME.match(name) is not None)
