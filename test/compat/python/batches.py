"""Has batches of Messages made with the official client, stable and beta, which checks each answer against its types, and
holds what came to the provider against the types of requests. It prints what it saw as JSON."""

import json
import sys
import typing
import urllib.request
import warnings

warnings.simplefilter("ignore")  # of types that take other fields, and say so

# Iterables are validated when they are read, which is too late.
typing.Iterable = typing.List

import anthropic
import anthropic.types.messages.batch_create_params as params
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import ConfigDict, TypeAdapter

[base_url, received, *models] = sys.argv[1:]
client = anthropic.Anthropic(api_key="weir-quickstart", base_url=base_url, max_retries=0, _strict_response_validation=True)
for of in (params.Request, MessageCreateParamsNonStreaming):
    of.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
calls_type = TypeAdapter(typing.List[params.Request])


def call(custom_id, model):
    return {
        "custom_id": custom_id,
        "params": {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
    }


def raises(kind, do):
    try:
        do()
    except kind as e:
        return e.body["type"] == "error" and e.body["error"]["type"]
    return "nothing"


seen = {}
for name, batches in {"messages": client.messages.batches, "beta": client.beta.messages.batches}.items():
    batch = batches.create(requests=[call("a", models[0]), call("b", models[1])])
    ended = batches.retrieve(batch.id)
    results = list(batches.results(batch.id))
    for result in results:
        TypeAdapter(type(result)).validate_python(result.to_dict(), strict=False)
    with urllib.request.urlopen(received) as request:
        calls = json.load(request)["requests"]
    calls_type.validate_json(json.dumps(calls), strict=True)
    seen[name] = {
        "batch": batch.processing_status,
        "ended": ended.processing_status,
        "listed": [b.id == batch.id for b in batches.list(limit=1)][:1],
        "models": sorted({c["params"]["model"] for c in calls}),
        "results": {r.custom_id: r.result.message.content[0].text if r.result.type == "succeeded" else r.result.type for r in results},
        "cancelled": batches.cancel(batch.id).processing_status,
        "deleted": batches.delete(batch.id).type,
        "missing": raises(anthropic.NotFoundError, lambda: batches.retrieve(batch.id)),
        "mixed": raises(anthropic.BadRequestError, lambda: batches.create(requests=[call("a", models[0]), call("b", "echo/echo-1")])),
    }
print(json.dumps(seen, separators=(",", ":")))
