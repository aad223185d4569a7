"""What an application sees of Weir."""

import atexit
import importlib
import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import ModuleType

import wrapt
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from weir import labels
from weir.sender import Sender
from weir.tracing import Modes, Provider

_log = logging.getLogger("weir")

# By the SDK that each instruments.
_INSTRUMENTORS = {
    "openai": ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    "anthropic": ("openinference.instrumentation.anthropic", "AnthropicInstrumentor"),
    "google.genai": ("openinference.instrumentation.google_genai", "GoogleGenAIInstrumentor"),
}


class AsyncLogger:
    """Records the calls that the SDKs of OpenAI, Anthropic and Google make in this process.

    Calls go to their providers as ever. Whatever becomes of Weir, they neither
    fail nor wait for it; `lost` counts the calls that could not be recorded.

    What `disable_*` and `enable_*` switch holds for calls that begin later, in
    every thread and task. Of a call that was under way, no more is sent than
    both modes allow.
    """

    def __init__(self, api_key: str | None = None, base_url: str | None = None) -> None:
        """Prepare to record at a Weir. Nothing is recorded before `init`.

        Args:
            api_key: A key of the scope `log`, else `WEIR_API_KEY` has it.
            base_url: Where Weir listens, else `WEIR_BASE_URL` or
                `http://localhost:8080`.

        Raises:
            ValueError: There is no key, or the URL is none of HTTP.

        """
        api_key = api_key or os.environ.get("WEIR_API_KEY")
        if not api_key:
            raise ValueError("no API key: pass api_key or set WEIR_API_KEY")
        base_url = base_url or os.environ.get("WEIR_BASE_URL") or "http://localhost:8080"
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url {base_url!r} must begin with http:// or https://")
        self._modes = Modes()
        self._sender = Sender(base_url, api_key, self._modes)
        self._provider: Provider | None = None
        self._instrumentors: list[BaseInstrumentor] = []

    def init(self) -> None:
        """Begin to record, for all clients that exist or will be made."""
        if self._provider is not None:
            return
        self._provider = Provider(self._modes, self._sender.put)
        atexit.register(self.close)
        for sdk in _INSTRUMENTORS:
            # What the application does not import need not be loaded for it.
            wrapt.register_post_import_hook(partial(self._instrument, sdk), sdk)

    def _instrument(self, sdk: str, _: ModuleType) -> None:
        if self._provider is None:
            return
        module, name = _INSTRUMENTORS[sdk]
        try:
            instrumentor: BaseInstrumentor = getattr(importlib.import_module(module), name)()
            if instrumentor.is_instrumented_by_opentelemetry:
                _log.error("%s is not recorded: the application instruments it by %s already", sdk, module)
                return
            instrumentor.instrument(tracer_provider=self._provider)
        except Exception:
            _log.exception("%s is not recorded: it cannot be instrumented", sdk)
        else:
            self._instrumentors.append(instrumentor)

    def disable_content_tracing(self) -> None:
        """Send no content of requests and responses, but tokens, latency and the like."""
        self._modes.content = False

    def enable_content_tracing(self) -> None:
        """Send content again."""
        self._modes.content = True

    def disable_logging(self) -> None:
        """Send nothing at all. What waits to be sent goes on waiting."""
        self._modes.logging = False
        self._sender.wake()

    def enable_logging(self) -> None:
        """Send again. Content tracing stays as it is."""
        self._modes.logging = True
        self._sender.wake()

    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Label the calls that this thread or task makes from now on.

        They replace the properties set before. Values are made strings. The names
        of control headers, such as `Service-User-Id`, mean what the headers mean.
        """
        labels.replace(properties)

    def properties(self, properties: Mapping[str, object]) -> AbstractContextManager[None]:
        """Label the calls made within, besides the labels that there are."""
        return labels.added(properties)

    def user(self, user_id: str) -> AbstractContextManager[None]:
        """Record the calls made within as of this user."""
        return labels.added({"Service-User-Id": user_id})

    def session(
        self, session_id: str, *, name: str | None = None, path: str | None = None
    ) -> AbstractContextManager[None]:
        """Record the calls made within as of this session, and of the place in it."""
        return labels.added(
            {"Service-Session-Id": session_id, "Service-Session-Name": name, "Service-Session-Path": path}
        )

    @property
    def lost(self) -> int:
        """How many calls could not be recorded."""
        return self._sender.lost

    def flush(self, timeout: float = 10) -> bool:
        """Wait until all calls are sent, at most so many seconds, and say whether Weir has taken them.

        While logging is off, they are not sent. Calls that Weir refuses count in lost; of these, the
        next flush says nothing.
        """
        return self._sender.flush(timeout)

    def close(self, timeout: float = 5) -> None:
        """Stop recording, and send what waits in so many seconds. It happens at exit, too."""
        atexit.unregister(self.close)
        self._provider = None
        for instrumentor in self._instrumentors:
            instrumentor.uninstrument()
        self._instrumentors.clear()
        self._sender.close(timeout)
