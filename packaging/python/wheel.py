"""Writes the wheel that carries the binary, the same whoever makes it.

    wheel.py BINARY VERSION OS ARCH SECONDS DIRECTORY

OS and ARCH are Go's names of them, SECONDS the time of all files since 1970. Linux' binary is
static, so that one wheel serves distributions with glibc and with musl.
https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import base64
import hashlib
import pathlib
import re
import sys
import time
import zipfile

binary, version, system, arch, seconds, directory = sys.argv[1:]
here = pathlib.Path(__file__).parent
platform = {
    # What Go 1.26 needs. https://go.dev/wiki/MinimumRequirements
    "darwin amd64": "macosx_12_0_x86_64",
    "darwin arm64": "macosx_12_0_arm64",
    "linux amd64": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "linux arm64": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "windows amd64": "win_amd64",
    "windows arm64": "win_arm64",
}[f"{system} {arch}"]
command = "weir.exe" if system == "windows" else "weir"

# A commit between releases has no version that PyPI takes.
# https://packaging.python.org/en/latest/specifications/version-specifiers/
release, _, rest = version.partition("-")
if candidate := re.fullmatch(r"rc\.?(\d+)", rest):
    release += "rc" + candidate[1]
elif rest:
    release += ".dev0+" + re.sub("[^a-z0-9]+", ".", rest.lower())

info = f"weir_gateway-{release}.dist-info"
summary = "LLM gateway and observability in one binary"
metadata = f"""Metadata-Version: 2.4
Name: weir-gateway
Version: {release}
Summary: {summary}
Home-page: https://github.com/weirhq/weir
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{(here / "README.md").read_text()}"""
files = {
    "weir_gateway/__init__.py": (here / "weir_gateway.py").read_bytes(),
    f"weir_gateway-{release}.data/scripts/{command}": pathlib.Path(binary).read_bytes(),
    f"{info}/METADATA": metadata.encode(),
    f"{info}/WHEEL": "\n".join(
        ["Wheel-Version: 1.0", "Generator: weir", "Root-Is-Purelib: false"]
        + [f"Tag: py3-none-{tag}" for tag in platform.split(".")]
        + [""]
    ).encode(),
    f"{info}/entry_points.txt": b"[console_scripts]\nweir-gateway = weir_gateway:main\n",
    f"{info}/licenses/LICENSE": pathlib.Path("LICENSE").read_bytes(),
    f"{info}/licenses/NOTICE": pathlib.Path("NOTICE").read_bytes(),
}
record = "".join(
    f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
    for name, data in files.items()
)
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

wheel = pathlib.Path(directory) / f"weir_gateway-{release}-py3-none-{platform}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in files.items():
        entry = zipfile.ZipInfo(name, time.gmtime(int(seconds))[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        archive.writestr(entry, data)
print(wheel)
