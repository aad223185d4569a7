"""What is sent of a call."""

import openai
import pytest
from calls import CALLS
from collector import Collector
from provider import CANARY

from weir import AsyncLogger

SAID = {f"I say {CANARY}", f"I say {CANARY}."}

USAGE = {
    "llm.token_count.prompt": 30,
    "llm.token_count.prompt_details.cache_read": 20,
    "llm.token_count.completion": 12,
    "llm.token_count.total": 42,
}

MODELS = {
    "chat": ("openai", "gpt-4o-2024-08-06"),
    "responses": ("openai", "gpt-5-2025-08-07"),
    "messages": ("anthropic", "claude-sonnet-4-5-20250929"),
    "generate": ("google", "gemini-2.5-flash"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded(name: str, provider: str, collector: Collector, logger: AsyncLogger) -> None:
    assert CALLS[name](provider, "What do you say?") in SAID
    assert logger.flush()
    [sent] = collector.attributes()
    kind = name.partition("_")[0]
    system, model = MODELS[kind]
    assert sent.get("llm.system", sent.get("llm.provider")) == system
    assert sent["llm.model_name"] == model
    assert sent.items() >= USAGE.items()
    if kind == "responses":
        assert sent["gen_ai.response.service_tier"] == "flex"
    if kind == "messages":
        assert sent["llm.usage.web_search_requests"] == 2
        assert sent["llm.token_count.prompt_details.cache_write"] == 4
        assert sent["llm.usage.cache_creation.ephemeral_1h_input_tokens"] == 4
    else:
        assert sent["llm.token_count.completion_details.reasoning"] == 5
    assert sent["llm.is_streaming"] == ("stream" in name or "helper" in name)
    assert sent[f"llm.input_messages.{int(kind == 'responses')}.message.content"] == "What do you say?"
    assert any(value in SAID for key, value in sent.items() if key.startswith("llm.output_messages."))
    assert logger.lost == 0


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_a_failure_is_recorded(
    name: str, content: bool, provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    if not content:
        logger.disable_content_tracing()
    with pytest.raises(Exception, match="Too many"):
        CALLS[name](provider, "What do you say?", model="busy")
    assert logger.flush()
    [sent] = collector.attributes()
    assert sent["http.response.status_code"] == 429
    assert sent["error.type"]
    assert "busy" in (sent.get("llm.request.model_name"), sent.get("llm.model_name"))
    assert (CANARY.encode() in collector.requests[0][1]) == content


def test_usage_that_the_provider_does_not_tell_is_not_guessed(
    provider: str, collector: Collector, logger: AsyncLogger
) -> None:
    client = openai.OpenAI(base_url=provider + "/v1", api_key="none")
    list(client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi"}], stream=True))
    assert logger.flush()
    [sent] = collector.attributes()
    assert not any("token_count" in key for key in sent)


def test_a_stream_that_is_left_is_recorded(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    client = openai.OpenAI(base_url=provider + "/v1", api_key="none")
    stream = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi"}], stream=True)
    with stream:
        next(iter(stream))
    assert logger.flush()
    assert len(collector.spans()) == 1


def test_a_long_conversation_loses_nothing(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    client = openai.OpenAI(base_url=provider + "/v1", api_key="none")
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": str(n)} for n in range(300)])
    assert logger.flush()
    [sent] = collector.attributes()
    assert [sent[f"llm.input_messages.{n}.message.content"] for n in range(300)] == [str(n) for n in range(300)]
    assert sent["llm.model_name"] == "gpt-4o-2024-08-06"


def test_what_is_sent_is_otlp(provider: str, collector: Collector, logger: AsyncLogger) -> None:
    CALLS["chat"](provider, "Hi")
    assert logger.flush()
    [(headers, _)] = collector.requests
    assert headers["Path"] == "/v1/traces"
    assert headers["Authorization"] == "Bearer the-key"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["Content-Encoding"] == "gzip"


def test_the_key_and_the_address_may_come_from_the_environment(
    provider: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_API_KEY", "another-key")
    monkeypatch.setenv("WEIR_BASE_URL", collector.url + "/")
    logger = AsyncLogger()
    logger.init()
    CALLS["chat"](provider, "Hi")
    logger.close()
    [(headers, _)] = collector.requests
    assert (headers["Path"], headers["Authorization"]) == ("/v1/traces", "Bearer another-key")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEIR_API_KEY", raising=False)
    with pytest.raises(ValueError, match="WEIR_API_KEY"):
        AsyncLogger()
    with pytest.raises(ValueError, match="https://"):
        AsyncLogger("key", "llm.example.com")
