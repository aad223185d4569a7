"""Weir is a binary, `weir`. This package only brings it."""

import os
import sys
import sysconfig


def main() -> None:
    """Becomes the binary: `uvx weir-gateway` runs a command of the package's name."""
    weir = os.path.join(sysconfig.get_path("scripts"), "weir")
    os.execv(weir, [weir, *sys.argv[1:]])
