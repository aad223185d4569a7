"""Makes the calls that it reads as calls.py does, but Weir learns of them from its
AsyncLogger alone. Each is of a user of its id. Those whose ids end in `async` are
made with the asynchronous clients, of which nothing is printed but errors."""

import asyncio
import json
import sys

import anthropic
import openai
from google import genai
from google.genai import types

import weir
from calls import CALLS, arguments, options, seen


async def read(answer, stream):
    if stream:
        async for _ in answer:
            pass


async def chat_completions(call):
    async with openai.AsyncOpenAI(**options(call)) as client:
        create = client.chat.completions.create
        await read(await create(**arguments(create, call["request"])), call["stream"])


async def responses(call):
    async with openai.AsyncOpenAI(**options(call)) as client:
        create = client.responses.create
        await read(await create(**arguments(create, call["request"])), call["stream"])


async def messages(call):
    async with anthropic.AsyncAnthropic(**options(call)) as client:
        create = (client.beta if call["beta"] else client).messages.create
        await read(await create(**arguments(create, call["request"])), call["stream"])


async def generate_content(call):
    http = types.HttpOptions(base_url=call["base_url"], api_version="v1beta")
    request = call["request"]
    contents, config = request.pop("contents"), request.pop("generationConfig", {})
    config = types.GenerateContentConfig.model_validate({**config, **request})
    asked = {"model": call["model"], "contents": contents, "config": config}
    async with genai.Client(api_key="none", http_options=http).aio as client:
        if call["stream"]:
            await read(await client.models.generate_content_stream(**asked), True)
        else:
            await client.models.generate_content(**asked)


ASYNC_CALLS = {
    "chat.completions": chat_completions,
    "responses": responses,
    "messages": messages,
    "generateContent": generate_content,
}


def make(call):
    if not call["id"].endswith(" async"):
        return CALLS[call["endpoint"]](call)
    asyncio.run(ASYNC_CALLS[call["endpoint"]](call))
    return {}


logger = weir.AsyncLogger()
logger.init()
for call in json.load(sys.stdin):
    with logger.user(call["id"]):
        print(json.dumps(seen(make, call)), flush=True)
if not logger.flush() or logger.lost:
    sys.exit(f"{logger.lost} calls are lost")
