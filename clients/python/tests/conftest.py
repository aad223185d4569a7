from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from collector import Collector, started
from provider import Provider

from weir import AsyncLogger


@pytest.fixture(scope="session")
def provider() -> str:
    """Give the URL of a server that plays every provider."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    return started(server)


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    started(server)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def logger(collector: Collector) -> Iterator[AsyncLogger]:
    logger = AsyncLogger("the-key", collector.url)
    logger.init()
    yield logger
    logger.close()
