"""How spans get to Weir: through a bounded queue, in the background.

Nothing here waits in the application's threads or raises there. What Weir does
not take now is tried again while it is out of reach; what the queue has no room
for, or Weir refuses, is lost and counted.
"""

import gzip
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque

import requests
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from requests.auth import AuthBase

from weir.tracing import Modes

QUEUE_BYTES = 64 << 20
"""Of spans that wait, those on their way included."""

BATCH_BYTES = 4 << 20
BATCH_SPANS = 512

LINGER = 0.2
"""Seconds that a span waits for others to go with it."""

TIMEOUT = 10.0
"""Seconds that Weir has to connect, and to answer."""

LONGEST_PAUSE = 30.0
"""Seconds between two tries, at most."""

# What OTLP names as worth another try.
_RETRIED = {429, 502, 503, 504}

_log = logging.getLogger("weir")


class Sender:
    """Sends spans to `<base_url>/v1/traces` while logging is on."""

    def __init__(self, base_url: str, api_key: str, modes: Modes) -> None:
        """Take spans to send. Neither thread nor connection is there before the first."""
        self._url = base_url.rstrip("/") + "/v1/traces"
        self._auth = _Bearer(api_key)
        self._modes = modes
        self._begin()
        # A child has neither our thread nor a right to our connections.
        begin = weakref.WeakMethod(self._begin)
        os.register_at_fork(after_in_child=lambda: (again := begin()) and again())

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[ReadableSpan, int]] = deque()
        self._bytes = 0
        self._flushing = 0
        self._deadline: float | None = None  # once closed
        self._thread: threading.Thread | None = None
        self._session = requests.Session()
        self._warned = -LONGEST_PAUSE
        self.lost = 0
        self._lost_before = 0  # when flush was last asked

    def put(self, span: ReadableSpan) -> None:
        """Have the span sent, or count it as lost."""
        size = _size(span)
        with self._changed:
            if self._deadline is not None or self._bytes + size > QUEUE_BYTES:
                self._lose(1, "there is no room for more")
                return
            self._waiting.append((span, size))
            self._bytes += size
            self._start()
            self._changed.notify_all()

    def wake(self) -> None:
        """Look at the modes again."""
        with self._changed:
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until all is sent, which it isn't while logging is off, and say whether nothing was lost since."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or not self._modes.logging, timeout)
            self._flushing -= 1
            taken = self.lost == self._lost_before
            self._lost_before = self.lost
            return taken and not self._waiting

    def close(self, timeout: float) -> None:
        """Send what waits, each span tried once more, and take no more."""
        with self._changed:
            if self._deadline is not None:
                return
            self._deadline = time.monotonic() + timeout
            self._changed.notify_all()
        if self._thread:
            self._thread.join(timeout)
        else:
            self._run()
        with self._changed:
            self._lose(len(self._waiting), "the process ends")
            self._waiting.clear()
            self._changed.notify_all()

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="weir-sender", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # at the end of the process, where close sends
                return
            self._thread = thread

    def _run(self) -> None:
        with suppress_instrumentation():
            while batch := self._next():
                gone = self._send([span for span, _ in batch])
                with self._changed:
                    if not gone:
                        return
                    for _ in range(min(len(batch), len(self._waiting))):
                        self._bytes -= self._waiting.popleft()[1]
                    self._changed.notify_all()

    def _next(self) -> list[tuple[ReadableSpan, int]]:
        """Wait for the next batch. It is empty once there will be none."""
        with self._changed:
            while self._deadline is None or (self._waiting and self._open()):
                if not (self._waiting and self._open()):
                    self._changed.wait()
                    continue
                self._changed.wait_for(self._has_batch, LINGER)
                if batch := self._batch():  # unless logging went off meanwhile
                    return batch
        return []

    def _batch(self) -> list[tuple[ReadableSpan, int]]:
        batch: list[tuple[ReadableSpan, int]] = []
        size = 0
        for span in self._waiting if self._open() else ():
            size += span[1]
            if batch and (size > BATCH_BYTES or len(batch) == BATCH_SPANS):
                break
            batch.append(span)
        return batch

    def _open(self) -> bool:
        return self._modes.logging and (self._deadline is None or time.monotonic() < self._deadline)

    def _has_batch(self) -> bool:
        full = len(self._waiting) >= BATCH_SPANS or self._bytes >= BATCH_BYTES
        return full or self._flushing > 0 or self._deadline is not None

    def _send(self, spans: list[ReadableSpan]) -> bool:
        """Send the spans, and say whether they are done with: taken or refused."""
        try:
            body = gzip.compress(encode_spans(spans).SerializeToString(), 6)
            pause = 1.0
            while self._await_logging():
                after = self._post(body, len(spans))
                if after is None:
                    return True
                with self._changed:
                    if self._deadline is not None:
                        return False
                    self._changed.wait_for(lambda: self._deadline is not None, max(pause, after))
                pause = min(2 * pause, LONGEST_PAUSE)
        except Exception as e:
            self._lose(len(spans), repr(e))
            return True
        return False

    def _await_logging(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._modes.logging or self._deadline is not None)
            return self._open()

    def _post(self, body: bytes, spans: int) -> float | None:
        """Send a batch, and give the seconds to wait before it is worth another try."""
        try:
            answer = self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"},
                auth=self._auth,
                timeout=TIMEOUT,
                allow_redirects=False,
            )
        except requests.RequestException as e:
            self._warn(f"Weir is out of reach, trying again: {e}")
            return 0
        if answer.status_code == requests.codes.ok:
            taken = ExportTraceServiceResponse.FromString(answer.content).partial_success
            if taken.rejected_spans:
                self._lose(taken.rejected_spans, f"Weir refuses them: {taken.error_message}")
            return None
        failure = f"{self._url} answers {answer.status_code} {answer.text[:200]}"
        if answer.status_code not in _RETRIED:
            self._lose(spans, failure)
            return None
        self._warn(f"{failure}, trying again")
        asked = answer.headers.get("Retry-After", "")
        return min(float(asked), LONGEST_PAUSE) if asked.isdecimal() else 0

    def _lose(self, spans: int, why: str) -> None:
        if not spans:
            return
        with self._changed:
            self.lost += spans
        self._warn(f"{self.lost} calls are not recorded, the last since {why}")

    def _warn(self, message: str) -> None:
        now = time.monotonic()
        if now - self._warned >= LONGEST_PAUSE:
            self._warned = now
            _log.warning(message)


class _Bearer(AuthBase):
    """The key, in a way that a .netrc does not override."""

    def __init__(self, api_key: str) -> None:
        self._api_key = api_key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = "Bearer " + self._api_key
        return request


def _size(span: ReadableSpan) -> int:
    """Say roughly what memory the span takes."""
    attributes = [span.attributes or {}, *(event.attributes or {} for event in span.events)]
    return sum(sys.getsizeof(key) + sys.getsizeof(value) for each in attributes for key, value in each.items())
