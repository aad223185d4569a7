"""Users, sessions and properties."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
from calls import CALLS
from collector import Collector

from weir import AsyncLogger

PREFIX = "traceloop.association.properties."


def labels(collector: Collector) -> list[dict[str, Any]]:
    return [
        {key.removeprefix(PREFIX): value for key, value in sent.items() if key.startswith(PREFIX)}
        for sent in collector.attributes()
    ]


def test_users_sessions_and_properties(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    logger.set_properties({"Environment": "test", "Try": 1, "Nothing": None})
    with logger.user("ada"), logger.session("s-1", name="Help", path="/ask"):
        with logger.properties({"Feature": "search", "Service-Prompt-Id": "p-1"}):
            CALLS["chat"](provider, "Hi")
        CALLS["messages"](provider, "Hi")
    logger.set_properties({})
    CALLS["generate"](provider, "Hi")
    assert logger.flush()
    within = {
        "Service-User-Id": "ada",
        "Service-Session-Id": "s-1",
        "Service-Session-Name": "Help",
        "Service-Session-Path": "/ask",
        "Service-Property-Environment": "test",
        "Service-Property-Try": "1",
    }
    assert labels(collector) == [
        {**within, "Service-Property-Feature": "search", "Service-Prompt-Id": "p-1"},
        within,
        {},
    ]


def test_labels_stay_without_content(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    logger.disable_content_tracing()
    with logger.user("ada"):
        CALLS["chat"](provider, "Hi")
    assert logger.flush()
    assert labels(collector)[0]["Service-User-Id"] == "ada"


def test_threads_and_tasks_have_their_own(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    def in_a_thread(user: str) -> None:
        with logger.user(user):
            CALLS["chat"](provider, user)

    async def in_a_task(user: str) -> None:
        logger.set_properties({"Service-User-Id": user})
        await asyncio.sleep(0.01)
        async with openai.AsyncOpenAI(base_url=provider + "/v1", api_key="none") as client:
            await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": user}])

    async def tasks() -> None:
        await asyncio.gather(*(in_a_task(f"task {n}") for n in range(8)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(in_a_thread, [f"thread {n}" for n in range(8)]))
    asyncio.run(tasks())
    assert logger.flush()
    sent = collector.attributes()
    assert len(sent) == 16
    for each in sent:
        assert each[PREFIX + "Service-User-Id"] == each["llm.input_messages.0.message.content"]


def test_a_context_may_be_handed_on(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    with logger.user("ada"), ThreadPoolExecutor() as pool:
        pool.submit(contextvars.copy_context().run, CALLS["chat"], provider, "Hi").result()
    assert logger.flush()
    assert labels(collector) == [{"Service-User-Id": "ada"}]
