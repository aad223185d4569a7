"""The application's own tracing, which goes on as if Weir were not there."""

import random
from collections.abc import Iterator

import pytest
from calls import CALLS
from collector import Collector
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

from weir import AsyncLogger


@pytest.fixture
def own() -> Iterator[tuple[trace.Tracer, InMemorySpanExporter]]:
    """Give a tracer of the application's, and what it exports."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("application"), exporter
    provider.shutdown()


Own = tuple[trace.Tracer, InMemorySpanExporter]


def test_the_global_provider_is_left_alone(logger: AsyncLogger) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def test_records_belong_to_the_traces_of_the_application(
    own: Own, provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    tracer, exported = own
    with tracer.start_as_current_span("request") as parent:
        CALLS["chat"](provider, "Hi")
    assert logger.flush()
    [span] = collector.spans()
    context = parent.get_span_context()
    assert span.trace_id == context.trace_id.to_bytes(16, "big")
    assert span.parent_span_id == context.span_id.to_bytes(8, "big")
    assert [s.name for s in exported.get_finished_spans()] == ["request"]


@pytest.mark.parametrize("sampler", [ALWAYS_ON, ALWAYS_OFF])
@pytest.mark.parametrize("logging", [True, False])
def test_what_is_traced_within_a_call_is_sampled_as_ever(
    sampler: ParentBased, logging: bool, provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    """An HTTP client of the application's SDK may be traced, too: it sees the flag of its trace."""
    if not logging:
        logger.disable_logging()
    tracer = TracerProvider(sampler=ParentBased(sampler)).get_tracer("application")
    with tracer.start_as_current_span("request") as parent:
        within = logger._provider.get_tracer("test").start_span("call")  # type: ignore[union-attr]
        assert within.get_span_context().trace_flags.sampled == parent.get_span_context().trace_flags.sampled
        assert within.is_recording() == logging
        within.end()
    assert logger.flush()
    assert len(collector.spans()) == logging


def test_ids_do_not_repeat_with_the_seed(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    for _ in range(2):
        random.seed(42)
        CALLS["chat"](provider, "Hi")
    assert logger.flush()
    one, other = collector.spans()
    assert one.trace_id != other.trace_id
    assert one.span_id != other.span_id


def test_a_second_logger_says_that_it_records_nothing(
    collector: Collector, logger: AsyncLogger, caplog: pytest.LogCaptureFixture
) -> None:
    second = AsyncLogger("key", collector.url)
    second.init()
    second.close()
    assert "openai is not recorded" in caplog.text
