"""Whose calls these are: user, session and properties of what runs now.

They are kept in context variables, so that threads and asyncio tasks which
serve different users don't mix them up.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

PREFIX = "traceloop.association.properties."
"""Of the span attributes by which Weir learns of labels."""

Labels = Mapping[str, str]

_NONE: Labels = MappingProxyType({})
_set: ContextVar[Labels] = ContextVar("weir_properties", default=_NONE)
_entered: ContextVar[Labels] = ContextVar("weir_labels", default=_NONE)


def current() -> Labels:
    """Give the span attributes of the labels of what runs now."""
    return {PREFIX + name: value for name, value in {**_set.get(), **_entered.get()}.items()}


def replace(properties: Mapping[str, object]) -> None:
    """Set the properties in place of those set before."""
    _set.set(_named(properties))


@contextmanager
def added(properties: Mapping[str, object]) -> Iterator[None]:
    """Add to the labels while the context manager is entered."""
    token = _entered.set({**_entered.get(), **_named(properties)})
    try:
        yield
    finally:
        _entered.reset(token)


def _named(properties: Mapping[str, object]) -> Labels:
    """Name them as Weir's control headers are named. What is one stays one."""
    return {
        name if name.lower().startswith("service-") else "Service-Property-" + name: str(value)
        for name, value in properties.items()
        if value is not None
    }
