"""Weir is a binary, `weir`. This package only brings it."""

import os
import subprocess
import sys
import sysconfig


def main() -> None:
    """Becomes the binary: `uvx weir-gateway` runs a command of the package's name."""
    weir = os.path.join(sysconfig.get_path("scripts"), "weir")
    if os.name == "nt":  # no process becomes another one
        sys.exit(subprocess.call([weir + ".exe", *sys.argv[1:]]))
    os.execv(weir, [weir, *sys.argv[1:]])
