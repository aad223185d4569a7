"""Prints the data of the package genai-prices, which is Python, as JSON.

The argument is the path of genai_prices/data.py. The names of that file's types
stand for dictionaries of their arguments here, so that no package is needed.
"""

import __future__
import json
import pathlib
import sys

# A regular expression that says only what a name must not hold has no syntax in RE2.
NOT = "^(?!"


def fields(**given):
    if given.get("regex", "").startswith(NOT):
        return {"not": {"regex": "^" + given["regex"][len(NOT) : -1]}}
    return {key.rstrip("_"): value for key, value in given.items()}


class Names(dict):
    def __missing__(self, name):
        return fields


source = pathlib.Path(sys.argv[1]).read_text().replace("from .types import *\n", "")
names = Names(__annotations__={})
# Annotations name types too: they are not evaluated.
exec(compile(source, "data.py", "exec", __future__.annotations.compiler_flag), {}, names)
json.dump(names["providers"], sys.stdout, default=str)
