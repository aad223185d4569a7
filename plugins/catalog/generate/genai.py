"""Prints the data of the package genai-prices, which is Python, as JSON.

Reads genai_prices/data.py from standard input. The names of that file's types
stand for dictionaries of their arguments here, so that no package is needed.
"""

import __future__
import json
import sys


class Names(dict):
    def __missing__(self, name):
        return lambda **fields: {key.rstrip("_"): value for key, value in fields.items()}


source = sys.stdin.read().replace("from .types import *\n", "")
names = Names(__annotations__={})
# Annotations name types too: they are not evaluated.
exec(compile(source, "data.py", "exec", __future__.annotations.compiler_flag), {}, names)
json.dump(names["providers"], sys.stdout, default=str)
