"""Lists the fields of requests that the vendors' types give a text: each may name what a provider keeps, fetches or runs.

Writes a line for each: an API, and the name of the field. The fields of a request itself are all listed.
"""

import collections.abc
import inspect
import typing

import typing_extensions
from pydantic import BaseModel

import strict

APIS = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
    "/v2/chat": "cohere_chat",
    "enerateContent": "generate_content",
}


def is_object(t):
    return typing_extensions.is_typeddict(t) or inspect.isclass(t) and issubclass(t, BaseModel)


def parts(t):
    """The objects that a value of a type may have, and whether the value may be a text, or a list of texts."""
    if is_object(t):
        return [t], False
    if t is str or t is typing.Any or t is object:
        return [], True
    if isinstance(t, typing_extensions.TypeAliasType):
        return parts(t.__value__)
    of = typing.get_origin(t)
    if of is typing.Literal:
        return [], False
    objects, text = [], False
    for argument in typing.get_args(t):
        found, is_text = parts(argument)
        objects, text = objects + found, text or is_text
    return objects, text and of not in (dict, collections.abc.Mapping)


def fields(t):
    if typing_extensions.is_typeddict(t):
        return typing_extensions.get_type_hints(t, include_extras=True)
    return {f.alias or name: f.annotation for name, f in t.model_fields.items()}


def names(t, seen, top=False):
    if t in seen:
        return
    seen.add(t)
    for name, of in fields(t).items():
        objects, text = parts(of)
        if text or top:
            yield name
        for below in objects:
            yield from names(below, seen)


def main():
    found = set()
    for (_, path), adapters in strict.REQUESTS.items():
        for adapter in adapters.values():
            roots, _ = parts(adapter._type)
            for root in roots:
                found.update((APIS[path], name) for name in names(root, set(), top=True))
    for api, name in sorted(found):
        print(api, name)


main()
