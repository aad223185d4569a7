"""Asks OpenAI, and reports the call to Weir."""

from openai import OpenAI

from weir import AsyncLogger

logger = AsyncLogger()  # reads WEIR_API_KEY and WEIR_BASE_URL
logger.init()

with logger.user("ada"), logger.session("s-17"):
    stream = OpenAI().chat.completions.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": "What does this cost?"}],
        stream=True,
        stream_options={"include_usage": True},  # else nobody knows the cost of a stream
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()
