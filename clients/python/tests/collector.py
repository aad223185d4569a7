"""A server that takes spans as Weir does, and keeps the bytes."""

import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(ThreadingHTTPServer):
    """Answers `status` after `delay` seconds, and refuses `rejected` spans of what it takes."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.status, self.delay, self.rejected = 200, 0.0, 0
        self.headers: dict[str, str] = {}
        self.connections = 0
        self.requests: list[tuple[dict[str, str], bytes]] = []  # headers and unzipped bodies
        self.taken: list[bytes] = []

    def process_request(self, *args: Any) -> None:
        self.connections += 1
        super().process_request(*args)

    def spans(self) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in list(self.taken)]
        return [s for r in requests for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    def attributes(self) -> list[dict[str, Any]]:
        return [attributes(span) for span in self.spans()]


def attributes(span: Span) -> dict[str, Any]:
    return {kv.key: getattr(kv.value, kv.value.WhichOneof("value") or "string_value") for kv in span.attributes}


class _Handler(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(({"Path": self.path, **self.headers}, body))
        time.sleep(self.server.delay)
        if self.server.status == 200:
            self.server.taken.append(body)
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = self.server.rejected
        reply = answer.SerializeToString()
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


def started(server: ThreadingHTTPServer) -> str:
    """Serve in the background, at the URL given."""
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
