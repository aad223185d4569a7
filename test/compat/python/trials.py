"""Tries each of the clients that it reads as a JSON array on stdin with its model, and
prints what went wrong with each as a line of JSON. The models are echoes."""

import json
import re
import sys

from pydantic import BaseModel

SCHEMA = {
    "type": "object",
    "properties": {"location": {"type": "string"}},
    "required": ["location"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "The weather of a place."}
CALL = "What is the weather? get_weather()"
SAID = "You said: hi"
RETURNED = "The tool returned: sunny"
KEY = "weir-quickstart"


class Answer(BaseModel):
    ok: bool
    s: str


ANSWER = Answer(ok=True, s="text")


def equal(got, want):
    if isinstance(got, BaseModel):  # frameworks make classes of their own
        got, want = got.model_dump(), want.model_dump()
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def message(error):
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        body = body.get("error", body)
        return body.get("message", str(error))
    quoted = re.search(r"""["']message["']: ?(["'])(.*?)\1[,}]""", str(error))  # in the framework's own words
    return quoted[2] if quoted else str(error)


def main(clients):
    """Each client is a function of the base URL and the model, that returns its tasks."""
    out, sys.stdout = sys.stdout, sys.stderr  # LiteLLM prints advice
    for trial in json.load(sys.stdin):
        failures = {}
        tasks = clients[trial["client"]](trial["base_url"], trial["model"])
        for task in ("text", "stream", "tools", "schema"):
            try:
                tasks[task]()
            except Exception as error:
                failures[task] = " ".join(message(error).split())
        print(json.dumps({"client": trial["client"], "model": trial["model"], "failures": failures}), file=out, flush=True)
