"""Where the spans of calls come from: a tracer provider of our own.

The application's own tracing goes on as if this were not there. Its spans are
the parents of ours, so that both have the same trace ids; ours decide nothing
about its sampling.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from weir import labels, spans


@dataclass
class Modes:
    """What is recorded. Every call looks here when it begins and when it ends."""

    logging: bool = True
    content: bool = True


class Provider(trace.TracerProvider):
    """Makes tracers whose spans end in `put`."""

    def __init__(self, modes: Modes, put: Callable[[ReadableSpan], None]) -> None:
        """Make spans as the modes say."""
        self._modes = modes
        self._provider = TracerProvider(
            sampler=_LikeParent(),
            id_generator=_Ids(),
            shutdown_on_exit=False,
            # Each message of a conversation is several attributes, and a limit
            # drops the model's name before any of them.
            span_limits=SpanLimits(max_attributes=SpanLimits.UNSET, max_span_attributes=SpanLimits.UNSET),
        )
        self._provider.add_span_processor(_Processor(modes, put))

    def get_tracer(self, *args: Any, **kwargs: Any) -> trace.Tracer:
        """Give a tracer that stands aside while logging is off."""
        return _Tracer(self._modes, self._provider.get_tracer(*args, **kwargs))


class _Tracer(trace.Tracer):
    def __init__(self, modes: Modes, tracer: trace.Tracer) -> None:
        self._modes = modes
        self._recording = tracer
        self._standing_aside = trace.NoOpTracer()

    def start_span(self, *args: Any, **kwargs: Any) -> trace.Span:
        tracer = self._recording if self._modes.logging else self._standing_aside
        return tracer.start_span(*args, **kwargs)

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        tracer = self._recording if self._modes.logging else self._standing_aside
        return tracer.start_as_current_span(*args, **kwargs)


class _Processor(SpanProcessor):
    def __init__(self, modes: Modes, put: Callable[[ReadableSpan], None]) -> None:
        self._modes = modes
        self._put = put

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attributes(labels.current())
        if not self._modes.content:
            span.set_attributes(spans.OMITTED)

    def on_end(self, span: ReadableSpan) -> None:
        if self._modes.logging:
            self._put(spans.finished(span, content=self._modes.content))


class _LikeParent(Sampler):
    """Records every call, and hands on whether the application samples its trace."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: trace.SpanKind | None = None,
        attributes: Any = None,
        links: Any = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        parent = trace.get_current_span(parent_context).get_span_context()
        aside = parent.is_valid and not parent.trace_flags.sampled
        decision = Decision.RECORD_ONLY if aside else Decision.RECORD_AND_SAMPLE
        return SamplingResult(decision, attributes, parent.trace_state)

    def get_description(self) -> str:
        return "LikeParent"


class _Ids(IdGenerator):
    """Ids that neither `random.seed` nor a fork makes twice: records are named by them."""

    def generate_span_id(self) -> int:
        return secrets.randbits(64) or self.generate_span_id()

    def generate_trace_id(self) -> int:
        return secrets.randbits(128) or self.generate_trace_id()

    def is_trace_id_random(self) -> bool:
        return True
