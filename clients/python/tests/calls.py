"""Calls of every kind that the SDKs make. Each takes the provider's URL, a prompt
and perhaps a model, and gives the text of the answer."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import anthropic
import openai
from google import genai
from google.genai.types import HttpOptions

Call = Callable[..., str]

CALLS: dict[str, Call] = {}


def _call(function: Callable[..., Any]) -> Callable[..., Any]:
    def synchronous(*args: Any, **kwargs: Any) -> str:
        return str(asyncio.run(function(*args, **kwargs)))

    CALLS[function.__name__] = synchronous if asyncio.iscoroutinefunction(function) else function
    return function


@cache
def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


@cache
def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


@cache
def _google(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=HttpOptions(base_url=url))


def _asynchronous_openai(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


def _asynchronous_anthropic(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0)


def _chat(prompt: str, model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}]}


def _chat_stream(prompt: str, model: str) -> dict[str, Any]:
    return {**_chat(prompt, model), "stream": True, "stream_options": {"include_usage": True}}


def _messages(prompt: str, model: str) -> dict[str, Any]:
    return {**_chat(prompt, model), "max_tokens": 100}


def _delta(chunk: Any) -> str:
    return chunk.choices[0].delta.content or "" if chunk.choices else ""


def _text(event: Any) -> str:
    """Give what an event adds, of Responses or Messages."""
    if event.type == "response.output_text.delta":
        return str(event.delta)
    if event.type == "content_block_delta":
        return str(event.delta.text)
    return ""


@_call
def chat(url: str, prompt: str, model: str = "gpt-4o") -> str:
    return str(_openai(url).chat.completions.create(**_chat(prompt, model)).choices[0].message.content)


@_call
def chat_stream(url: str, prompt: str, model: str = "gpt-4o") -> str:
    return "".join(map(_delta, _openai(url).chat.completions.create(**_chat_stream(prompt, model))))


@_call
async def chat_async(url: str, prompt: str, model: str = "gpt-4o") -> str:
    async with _asynchronous_openai(url) as client:
        return str((await client.chat.completions.create(**_chat(prompt, model))).choices[0].message.content)


@_call
async def chat_async_stream(url: str, prompt: str, model: str = "gpt-4o") -> str:
    async with _asynchronous_openai(url) as client:
        stream = await client.chat.completions.create(**_chat_stream(prompt, model))
        return "".join([_delta(chunk) async for chunk in stream])


@_call
def responses(url: str, prompt: str, model: str = "gpt-5") -> str:
    return _openai(url).responses.create(model=model, input=prompt).output_text


@_call
def responses_stream(url: str, prompt: str, model: str = "gpt-5") -> str:
    return "".join(map(_text, _openai(url).responses.create(model=model, input=prompt, stream=True)))


@_call
async def responses_async(url: str, prompt: str, model: str = "gpt-5") -> str:
    async with _asynchronous_openai(url) as client:
        return (await client.responses.create(model=model, input=prompt)).output_text


@_call
async def responses_async_stream(url: str, prompt: str, model: str = "gpt-5") -> str:
    async with _asynchronous_openai(url) as client:
        stream = await client.responses.create(model=model, input=prompt, stream=True)
        return "".join([_text(event) async for event in stream])


@_call
def messages(url: str, prompt: str, model: str = "claude-sonnet-4-5") -> str:
    return str(_anthropic(url).messages.create(**_messages(prompt, model)).content[0].text)


@_call
def messages_stream(url: str, prompt: str, model: str = "claude-sonnet-4-5") -> str:
    return "".join(map(_text, _anthropic(url).messages.create(**_messages(prompt, model), stream=True)))


@_call
def messages_helper(url: str, prompt: str, model: str = "claude-sonnet-4-5") -> str:
    with _anthropic(url).messages.stream(**_messages(prompt, model)) as stream:
        return stream.get_final_text()


@_call
async def messages_async(url: str, prompt: str, model: str = "claude-sonnet-4-5") -> str:
    async with _asynchronous_anthropic(url) as client:
        return str((await client.messages.create(**_messages(prompt, model))).content[0].text)


@_call
async def messages_async_stream(url: str, prompt: str, model: str = "claude-sonnet-4-5") -> str:
    async with _asynchronous_anthropic(url) as client:
        stream = await client.messages.create(**_messages(prompt, model), stream=True)
        return "".join([_text(event) async for event in stream])


@_call
def generate(url: str, prompt: str, model: str = "gemini-2.5-flash") -> str:
    return _google(url).models.generate_content(model=model, contents=prompt).text or ""


@_call
def generate_stream(url: str, prompt: str, model: str = "gemini-2.5-flash") -> str:
    chunks = _google(url).models.generate_content_stream(model=model, contents=prompt)
    return "".join(chunk.text or "" for chunk in chunks)


@_call
async def generate_async(url: str, prompt: str, model: str = "gemini-2.5-flash") -> str:
    async with genai.Client(api_key="none", http_options=HttpOptions(base_url=url)).aio as client:
        return (await client.models.generate_content(model=model, contents=prompt)).text or ""


@_call
async def generate_async_stream(url: str, prompt: str, model: str = "gemini-2.5-flash") -> str:
    async with genai.Client(api_key="none", http_options=HttpOptions(base_url=url)).aio as client:
        chunks = await client.models.generate_content_stream(model=model, contents=prompt)
        return "".join([chunk.text or "" async for chunk in chunks])
