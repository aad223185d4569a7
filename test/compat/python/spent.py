"""Calls each client once with as many retries as it makes by itself, and prints the status
that each raises as a line of JSON. The arguments are the address, below which each client
has a path, and the clients."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
KEY, MODEL, HI = "spent", "echo/echo-1", [{"role": "user", "content": "hi"}]


def responses(url):
    import openai

    openai.OpenAI(api_key=KEY, base_url=url + "/v1").responses.create(model=MODEL, input="hi")


def chat(url):
    import openai

    openai.OpenAI(api_key=KEY, base_url=url + "/v1").chat.completions.create(model=MODEL, messages=HI)


def messages(url):
    import anthropic

    anthropic.Anthropic(api_key=KEY, base_url=url).messages.create(model=MODEL, max_tokens=100, messages=HI)


def langchain_openai(url):
    from langchain_openai import ChatOpenAI

    ChatOpenAI(model=MODEL, base_url=url + "/v1", api_key=KEY).invoke("hi")


def langchain_anthropic(url):
    from langchain_anthropic import ChatAnthropic

    ChatAnthropic(model=MODEL, base_url=url, api_key=KEY, max_tokens=100).invoke("hi")


def litellm_openai(url):
    import litellm

    litellm.completion("openai/" + MODEL, HI, api_base=url + "/v1", api_key=KEY)


def litellm_anthropic(url):
    import litellm

    litellm.completion("anthropic/" + MODEL, HI, api_base=url, api_key=KEY, max_tokens=100)


out, sys.stdout = sys.stdout, sys.stderr  # LiteLLM prints advice
for client in sys.argv[2:]:
    status = 200
    try:
        globals()[client](f"{sys.argv[1]}/{client}")
    except Exception as error:
        status = getattr(error, "status_code", 0)
    print(json.dumps({"client": client, "status": status}), file=out, flush=True)
