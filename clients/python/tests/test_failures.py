"""What becomes of an application whose Weir is not well."""

import os
import socket
import time
from collections.abc import Iterator
from statistics import median

import pytest
from calls import CALLS
from collector import Collector
from provider import CANARY

from weir import AsyncLogger, sender

CALL = "chat"


@pytest.fixture
def blackhole() -> Iterator[str]:
    """Give the address of one who takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def unused() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


def spent(provider: str, calls: int = 40) -> float:
    """Make calls, and give the seconds that one takes."""
    times = []
    for n in range(calls):
        begin = time.perf_counter()
        assert CANARY in CALLS[CALL](provider, f"Call {n}")
        times.append(time.perf_counter() - begin)
    return median(times)


@pytest.mark.parametrize("state", ["down", "silent", "slow", "500", "503"])
def test_calls_neither_wait_nor_fail(state: str, provider: str, collector: Collector, blackhole: str) -> None:
    CALLS[CALL](provider, "Hi")  # opens the connection
    alone = spent(provider)
    collector.delay = 3.0 if state == "slow" else 0.0
    collector.status = int(state) if state.isdecimal() else 200
    logger = AsyncLogger("key", {"down": unused(), "silent": blackhole}.get(state, collector.url))
    logger.init()
    recorded = spent(provider)
    begin = time.perf_counter()
    logger.close(timeout=1)
    # Far less than a try of any kind takes; the rest is what describing the call costs.
    assert recorded < alone + 0.1
    assert time.perf_counter() - begin < 2
    if state in ("down", "silent", "503"):
        assert logger.lost == 40


def test_what_weir_cannot_take_now_is_sent_later(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    collector.status = 503
    for n in range(3):
        CALLS[CALL](provider, f"Call {n}")
    assert not logger.flush(0.5)
    collector.status = 200
    assert logger.flush()
    assert len(collector.spans()) == 3
    assert logger.lost == 0


def test_retry_after_is_respected(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    collector.status, collector.headers = 503, {"Retry-After": "2"}
    CALLS[CALL](provider, "Hi")
    assert not logger.flush(0.5)
    collector.status = 200
    assert not logger.flush(1)
    assert logger.flush()


@pytest.mark.parametrize("status", [302, 400, 401, 413, 500])
def test_what_weir_refuses_is_lost_and_counted(
    status: int, provider: str, collector: Collector, logger: AsyncLogger, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = status
    CALLS[CALL](provider, "Hi")
    assert not logger.flush()
    assert logger.lost == 1
    assert f"answers {status}" in caplog.text
    collector.status = 200
    CALLS[CALL](provider, "Hi again")
    assert logger.flush()
    assert len(collector.spans()) == 1
    assert logger.lost == 1


def test_what_weir_refuses_of_a_batch_is_counted(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    collector.rejected = 1
    CALLS[CALL](provider, "Hi")
    assert not logger.flush()
    assert logger.lost == 1


def test_memory_is_bounded(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "QUEUE_BYTES", 1 << 20)
    logger = AsyncLogger("key", unused())
    logger.init()
    for _ in range(20):
        CALLS[CALL](provider, "x" * 100_000)
    waiting = logger._sender._bytes
    assert 500_000 < waiting <= 1 << 20
    lost = logger.lost
    assert 0 < lost < 20
    logger.close(timeout=1)
    assert logger.lost == 20


def test_batches_are_bounded(
    provider: str, collector: Collector, logger: AsyncLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "BATCH_BYTES", 500_000)
    logger.disable_logging()  # so that all are there at once
    logger._modes.logging = True
    collector.delay = 0.2
    for _ in range(12):
        CALLS[CALL](provider, "x" * 100_000)
    assert logger.flush()
    assert len(collector.spans()) == 12
    assert len(collector.requests) > 1
    assert all(len(body) < 1_000_000 for _, body in collector.requests)


def test_a_netrc_does_not_replace_the_key(
    provider: str,
    collector: Collector,
    logger: AsyncLogger,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setitem(os.environ, "NETRC", str(netrc))
    CALLS[CALL](provider, "Hi")
    assert logger.flush()
    [(headers, _)] = collector.requests
    assert headers["Authorization"] == "Bearer the-key"
