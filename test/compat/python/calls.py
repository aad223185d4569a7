"""Makes the calls that it reads as a JSON array on stdin with the official
clients, and prints what each client saw as a line of JSON."""

import inspect
import json
import sys

import anthropic
import openai
from google import genai
from google.genai import errors, types


def options(call):
    return {
        "api_key": "none",
        "base_url": call["base_url"],
        "default_headers": call["headers"],
        "max_retries": 0,
    }


def arguments(method, request):
    """A field that the client has no parameter for goes into extra_body."""
    known = inspect.signature(method).parameters
    named = {k: v for k, v in request.items() if k in known}
    extra = {k: v for k, v in request.items() if k not in known}
    return {**named, "extra_body": extra or None}


def dump(model):
    return model.model_dump(mode="json", by_alias=True, warnings=False) if model else None


def chat_completions(call):
    completions = openai.OpenAI(**options(call)).chat.completions
    request = call["request"]
    if call["helper"]:
        request.pop("stream")
        with completions.stream(**arguments(completions.stream, request)) as stream:
            return chat_answer(stream.get_final_completion())
    answer = completions.create(**arguments(completions.create, request))
    if not request.get("stream"):
        return chat_answer(answer)

    text, tools, usage = "", {}, None
    for chunk in answer:
        usage = chunk.usage or usage
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta
        text += delta.content or ""
        for part in delta.tool_calls or []:
            tool = tools.setdefault(part.index, {"name": "", "arguments": ""})
            tool["name"] += part.function.name or ""
            tool["arguments"] += part.function.arguments or ""
    return {"text": text, "tool_calls": list(tools.values()), "usage": dump(usage)}


def chat_answer(answer):
    message = answer.choices[0].message
    return {
        "text": message.content or "",
        "tool_calls": [
            {"name": t.function.name, "arguments": t.function.arguments} for t in message.tool_calls or []
        ],
        "usage": dump(answer.usage),
    }


def responses(call):
    client = openai.OpenAI(**options(call)).responses
    request = call["request"]
    if call["helper"]:
        request.pop("stream")
        with client.stream(**arguments(client.stream, request)) as stream:
            return responses_answer(stream.get_final_response())
    answer = client.create(**arguments(client.create, request))
    if not request.get("stream"):
        return responses_answer(answer)

    seen = {"text": "", "tool_calls": [], "usage": None}
    for event in answer:
        if event.type == "response.output_text.delta":
            seen["text"] += event.delta
        elif event.type == "response.output_item.done":
            seen["tool_calls"] += function_calls([event.item])
        elif event.type in ("response.completed", "response.incomplete"):
            seen["usage"] = dump(event.response.usage)
    return seen


def responses_answer(answer):
    return {
        "text": answer.output_text,
        "tool_calls": function_calls(answer.output),
        "usage": dump(answer.usage),
    }


def function_calls(items):
    return [{"name": i.name, "arguments": i.arguments} for i in items if i.type == "function_call"]


def messages(call):
    client = anthropic.Anthropic(**options(call))
    client = (client.beta if call["beta"] else client).messages
    request = call["request"]
    if call["helper"]:
        request.pop("stream")
        with client.stream(**arguments(client.stream, request)) as stream:
            return messages_answer(stream.get_final_message())
    answer = client.create(**arguments(client.create, request))
    if not request.get("stream"):
        return messages_answer(answer)

    text, tools, usage = "", {}, None
    for event in answer:
        if event.type == "message_start":
            usage = dump(event.message.usage)
        elif event.type == "message_delta":
            usage |= {k: v for k, v in dump(event.usage).items() if v is not None}
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            tools[event.index] = {"name": event.content_block.name, "arguments": ""}
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            text += event.delta.text
        elif event.type == "content_block_delta" and event.index in tools:
            tools[event.index]["arguments"] += event.delta.partial_json
    return {"text": text, "tool_calls": list(tools.values()), "usage": usage}


def messages_answer(answer):
    return {
        "text": "".join(b.text for b in answer.content if b.type == "text"),
        "tool_calls": [{"name": b.name, "arguments": b.input} for b in answer.content if b.type == "tool_use"],
        "usage": dump(answer.usage),
    }


def generate_content(call):
    http = types.HttpOptions(base_url=call["base_url"], api_version="v1beta", headers=call["headers"])
    client = genai.Client(api_key="none", http_options=http)
    request = call["request"]
    contents, config = request.pop("contents"), request.pop("generationConfig", {})
    config = types.GenerateContentConfig.model_validate({**config, **request})
    if call["stream"]:
        chunks = client.models.generate_content_stream(model=call["model"], contents=contents, config=config)
    else:
        chunks = [client.models.generate_content(model=call["model"], contents=contents, config=config)]

    seen = {"text": "", "tool_calls": [], "usage": None}
    for chunk in chunks:
        seen["text"] += chunk.text or ""
        seen["tool_calls"] += [{"name": f.name, "arguments": f.args} for f in chunk.function_calls or []]
        seen["usage"] = dump(chunk.usage_metadata) or seen["usage"]
    return seen


CALLS = {
    "chat.completions": chat_completions,
    "responses": responses,
    "messages": messages,
    "generateContent": generate_content,
}



def seen(make, call):
    try:
        answer = make(call)
    except Exception as e:
        status = e.code if isinstance(e, errors.APIError) else getattr(e, "status_code", None)
        answer = {"error": {"type": type(e).__name__, "status": status, "message": str(e)}}
    return {"id": call["id"], **answer}


if __name__ == "__main__":
    for call in json.load(sys.stdin):
        print(json.dumps(seen(CALLS[call["endpoint"]], call)), flush=True)
