"""A server that answers as OpenAI, Anthropic and Google do.

Every answer says `CANARY` and reports the same usage, in the words of its
provider: 30 tokens in, of which 20 were read from a cache, and 12 out, of which
5 were for reasoning where the provider tells.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

CANARY = "canary-4f1d"

Event = dict[str, Any]

CHAT_USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 12,
    "total_tokens": 42,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES_USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 42,
}
MESSAGES_USAGE = {
    "input_tokens": 6,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 4,
    "output_tokens": 12,
    "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 0},
    "server_tool_use": {"web_search_requests": 2},
}
GEMINI_USAGE = {
    "promptTokenCount": 30,
    "cachedContentTokenCount": 20,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 42,
}


def chat(request: Event) -> Event | list[Event]:
    head = {"id": "chatcmpl-1", "created": 1790000000, "model": "gpt-4o-2024-08-06"}
    if not request.get("stream"):
        message = {"role": "assistant", "content": f"I say {CANARY}.", "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}
    head["object"] = "chat.completion.chunk"

    def chunk(delta: Event, finish: str | None = None) -> Event:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"content": "I say "}), chunk({"content": CANARY})]
    chunks.append(chunk({}, "stop"))
    if (request.get("stream_options") or {}).get("include_usage"):
        chunks.append({**head, "choices": [], "usage": CHAT_USAGE})
    return chunks


def responses(request: Event) -> Event | list[Event]:
    text = f"I say {CANARY}."
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    whole: Event = {
        "id": "resp_1", "object": "response", "created_at": 1790000000, "status": "completed",
        "model": "gpt-5-2025-08-07", "service_tier": "flex", "output": [item], "usage": RESPONSES_USAGE, "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
    }  # fmt: skip
    if not request.get("stream"):
        return whole
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[Event] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def messages(request: Event) -> Event | list[Event]:
    text = f"I say {CANARY}."
    whole: Event = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": MESSAGES_USAGE,
    }  # fmt: skip
    if not request.get("stream"):
        return whole
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**MESSAGES_USAGE, "output_tokens": 1}}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": MESSAGES_USAGE,
        },
        {"type": "message_stop"},
    ]


def generate_content(stream: bool) -> Event | list[Event]:
    def chunk(text: str, **more: Any) -> Event:
        content = {"role": "model", "parts": [{"text": text}]}
        return {
            "candidates": [{"index": 0, "content": content, **more}],
            "usageMetadata": GEMINI_USAGE, "modelVersion": "gemini-2.5-flash", "responseId": "gemini-1",
        }  # fmt: skip

    if stream:
        return [chunk("I say "), chunk(CANARY, finishReason="STOP")]
    return chunk(f"I say {CANARY}.", finishReason="STOP")


def answer(path: str, request: Event) -> Event | list[Event]:
    path = path.partition("?")[0]
    if path.endswith("/chat/completions"):
        return chat(request)
    if path.endswith("/responses"):
        return responses(request)
    if path.endswith("/messages"):
        return messages(request)
    return generate_content(stream=path.endswith(":streamGenerateContent"))


def events(path: str, answers: list[Event]) -> Iterator[bytes]:
    for each in answers:
        name = f"event: {each['type']}\n" if "type" in each else ""
        yield f"{name}data: {json.dumps(each)}\n\n".encode()
    if path.endswith("/chat/completions"):
        yield b"data: [DONE]\n\n"


class Provider(BaseHTTPRequestHandler):
    """Answers 429 to whoever asks for the model `busy`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "busy" in (request.get("model") or self.path):
            self.reply(429, json.dumps({"error": {"message": f"Too many, {CANARY}", "code": 429}}).encode())
            return
        answered = answer(self.path, request)
        if isinstance(answered, dict):
            self.reply(200, json.dumps(answered).encode())
        else:
            self.reply(200, b"".join(events(self.path, answered)), "text/event-stream")

    def reply(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
