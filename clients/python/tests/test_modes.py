"""What disable_… and enable_… promise."""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from calls import CALLS
from collector import Collector
from provider import CANARY

from weir import AsyncLogger

PROMPT = f"Say {CANARY}!"


@pytest.mark.parametrize("name", CALLS)
def test_no_content_leaves_while_content_tracing_is_off(
    name: str, provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    logger.disable_content_tracing()
    CALLS[name](provider, PROMPT)
    assert logger.flush()
    [(_, body)] = collector.requests
    assert CANARY.encode() not in body
    [sent] = collector.attributes()
    assert sent["llm.token_count.total"] == 42
    assert sent["llm.model_name"]
    for omit in ("Service-Omit-Request", "Service-Omit-Response"):
        assert sent["traceloop.association.properties." + omit] == "true"


def test_content_tracing_returns(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    for switch, content in [(logger.disable_content_tracing, False), (logger.enable_content_tracing, True)] * 2:
        switch()
        CALLS["chat"](provider, PROMPT)
        assert logger.flush()
        assert (CANARY.encode() in collector.requests[-1][1]) == content


def test_nobody_is_called_while_logging_is_off(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    logger.disable_logging()
    for call in CALLS.values():
        call(provider, PROMPT)
    assert logger.flush(0.5)  # there is nothing to send
    logger.close()
    assert collector.connections == 0
    assert logger.lost == 0


def test_logging_returns_with_content_tracing_as_it_was(
    provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    logger.disable_content_tracing()
    logger.disable_logging()
    CALLS["chat"](provider, "off")
    logger.enable_logging()
    CALLS["chat"](provider, "on")
    assert logger.flush()
    assert len(collector.spans()) == 1
    assert CANARY.encode() not in collector.requests[0][1]


def test_what_waits_is_held_while_logging_is_off(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    collector.status = 503
    CALLS["chat"](provider, "Hi")
    wait_for(lambda: len(collector.requests) == 1)
    logger.disable_logging()
    collector.status = 200
    time.sleep(1.5)  # the second try was due after one
    assert len(collector.requests) == 1
    logger.enable_logging()
    assert logger.flush()
    assert len(collector.spans()) == 1


@pytest.mark.parametrize(("mode", "expected"), [("content_tracing", "no content"), ("logging", "nothing")])
def test_a_switch_holds_for_what_is_under_way(
    mode: str, expected: str, provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    client = openai.OpenAI(base_url=provider + "/v1", api_key="none")
    stream = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": PROMPT}], stream=True)
    next(iter(stream))
    getattr(logger, "disable_" + mode)()
    list(stream)
    logger.enable_logging()
    assert logger.flush()
    assert len(collector.spans()) == {"no content": 1, "nothing": 0}[expected]
    assert not any(CANARY.encode() in body for _, body in collector.requests)


def test_threads_and_tasks_that_run_already_follow(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    switched = threading.Event()

    def in_a_thread() -> None:
        switched.wait()
        CALLS["chat"](provider, PROMPT)

    async def in_a_task() -> None:
        async with openai.AsyncOpenAI(base_url=provider + "/v1", api_key="none") as client:
            await asyncio.to_thread(switched.wait)
            await client.responses.create(model="gpt-5", input=PROMPT)

    async def tasks() -> None:
        running = asyncio.create_task(in_a_task())
        await asyncio.sleep(0.1)
        logger.disable_content_tracing()
        switched.set()
        await running

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    asyncio.run(tasks())
    thread.join()
    assert logger.flush()
    assert len(collector.spans()) == 2
    assert not any(CANARY.encode() in body for _, body in collector.requests)


def test_switches_under_concurrent_calls(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    """Each call says in its prompt what may be known of it, and is made in one mode from end to end."""
    changing = threading.Barrier(5)
    modes = [(logging, content) for logging in (True, False) for content in (True, False)] * 5
    random.Random(1).shuffle(modes)
    kinds = ["chat", "responses_stream", "messages", "generate"]

    def work(kind: str) -> None:
        for n, (logging, content) in enumerate(modes):
            changing.wait()  # the mode is set
            CALLS[kind](provider, f"<{n} {kind} {logging} {content}>")
            changing.wait()  # every call is made

    with ThreadPoolExecutor() as pool:
        working = [pool.submit(work, kind) for kind in kinds]
        for logging, content in modes:
            (logger.enable_logging if logging else logger.disable_logging)()
            (logger.enable_content_tracing if content else logger.disable_content_tracing)()
            changing.wait()
            changing.wait()
        for each in working:
            each.result()
    logger.enable_logging()
    assert logger.flush()
    bodies = b"".join(body for _, body in collector.requests)
    for n, (logging, content) in enumerate(modes):
        for kind in kinds:
            assert (f"<{n} {kind} {logging} {content}>".encode() in bodies) == (logging and content)
    assert len(collector.spans()) == len(kinds) * sum(logging for logging, _ in modes)


def test_switches_at_any_time(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    """Calls that begin and end while the switches turn lose nothing but what a mode forbids."""
    logger.disable_content_tracing()
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            logger.disable_logging()
            time.sleep(0.001)
            logger.enable_logging()
            time.sleep(0.001)

    turning = threading.Thread(target=turn)
    turning.start()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: CALLS["chat"](provider, f"{PROMPT} {n}"), range(60)))
    done.set()
    turning.join()
    assert all(CANARY in answer for answer in answers)
    assert logger.flush()
    assert not any(CANARY.encode() in body for _, body in collector.requests)
    assert logger.lost == 0


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
