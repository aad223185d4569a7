"""What of a finished call is sent.

The instrumentations describe a call by attributes of its span, as OpenInference
names them. Weir wants a few more, which are found here; and of calls whose
content must not leave the process, nothing is kept but what is known to be none.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Status, StatusCode
from opentelemetry.util.types import AttributeValue

from weir.labels import PREFIX

Attributes = dict[str, AttributeValue]

OMITTED: Attributes = {PREFIX + "Service-Omit-Request": "true", PREFIX + "Service-Omit-Response": "true"}
"""Marks a call whose content must not leave the process."""

_WITHOUT_CONTENT = frozenset(
    {
        "embedding.model_name",
        "error.type",
        "gen_ai.response.service_tier",
        "http.response.status_code",
        "llm.finish_reason",
        "llm.is_streaming",
        "llm.model_name",
        "llm.provider",
        "llm.request.model_name",
        "llm.response.model_name",
        "llm.system",
        "openinference.span.kind",
        "session.id",
        "user.id",
    }
)
_PREFIXES_WITHOUT_CONTENT = (PREFIX, "llm.token_count.", "llm.usage.")

# "Error code: 429 - {…}" of OpenAI's and Anthropic's, "429 RESOURCE_EXHAUSTED. {…}"
# of Google's.
_STATUS_CODE = re.compile(r"(?:Error code: )?([45]\d\d)\b")


def finished(span: ReadableSpan, *, content: bool) -> ReadableSpan:
    """Give the span as it is sent: complete, and without content unless that may be sent."""
    attributes = dict(span.attributes or {})
    attributes.update(_learned(span, attributes))
    content = content and not attributes.items() >= OMITTED.items()
    if content:
        events, status = span.events, span.status
    else:
        attributes = {k: v for k, v in attributes.items() if _has_no_content(k)} | OMITTED
        # Errors of providers repeat what was asked.
        events, status = [Event(e.name, timestamp=e.timestamp) for e in span.events], Status(span.status.status_code)
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        events=events,
        kind=span.kind,
        status=status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _has_no_content(name: str) -> bool:
    return name in _WITHOUT_CONTENT or name.startswith(_PREFIXES_WITHOUT_CONTENT)


def _learned(span: ReadableSpan, attributes: Attributes) -> Iterator[tuple[str, AttributeValue]]:
    parameters = _object(attributes.get("llm.invocation_parameters"))
    if isinstance(model := parameters.get("model"), str):
        yield "llm.request.model_name", model
    yield "llm.is_streaming", parameters.get("stream") is True or "stream" in span.name.lower()
    yield from _billed(_object(attributes.get("output.value")))
    if span.status.status_code is not StatusCode.ERROR:
        return
    for event in span.events:
        raised = event.attributes or {}
        if kind := raised.get("exception.type"):
            yield "error.type", kind
        if code := _STATUS_CODE.match(str(raised.get("exception.message", ""))):
            yield "http.response.status_code", int(code[1])


def _billed(answer: dict[str, Any]) -> Iterator[tuple[str, AttributeValue]]:
    """Give what an answer's price depends on, besides its tokens."""
    usage = _object(answer.get("usage"))
    tier = answer.get("service_tier") or usage.get("service_tier")
    if isinstance(tier, str) and tier != "standard":  # Anthropic's name of the default
        yield "gen_ai.response.service_tier", tier
    searches = _object(usage.get("server_tool_use")).get("web_search_requests")
    if isinstance(searches, int):
        yield "llm.usage.web_search_requests", searches
    written = _object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
    if isinstance(written, int):
        yield "llm.usage.cache_creation.ephemeral_1h_input_tokens", written


def _object(value: Any) -> dict[str, Any]:
    """Give an object, or what is one in JSON. Anything else has no members."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
