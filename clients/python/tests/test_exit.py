"""What happens at the end of a process, and in its children."""

import subprocess
import sys

from collector import Collector
from test_failures import unused

PROGRAM = """
import atexit, sys, time, weir
atexit.register(lambda: print(time.monotonic() - ended))  # after the logger's own
logger = weir.AsyncLogger("key", {weir!r})
logger.init()

import openai
client = openai.OpenAI(base_url={provider!r} + "/v1", api_key="none")
def call(prompt):
    client.chat.completions.create(model="gpt-4o", messages=[{{"role": "user", "content": prompt}}])

{program}
ended = time.monotonic()
"""


def run(program: str, provider: str, weir: str) -> float:
    """Run a program to its end, and give the seconds that the logger took there."""
    text = PROGRAM.format(program=program, provider=provider, weir=weir)
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    return float(done.stdout)


def test_exit_sends_what_waits(provider: str, collector: Collector) -> None:
    run("for n in range(5): call(str(n))", provider, collector.url)
    assert len(collector.spans()) == 5


def test_exit_does_not_wait_for_a_weir_that_is_down(provider: str) -> None:
    assert run("call('Hi')", provider, unused()) < 2


def test_exit_sends_nothing_while_logging_is_off(provider: str, collector: Collector) -> None:
    run("call('Hi'); logger.disable_logging(); call('Hi again')", provider, collector.url)
    assert all(sent["llm.input_messages.0.message.content"] == "Hi" for sent in collector.attributes())


def test_calls_of_a_child_are_sent_by_the_child(provider: str, collector: Collector) -> None:
    program = """
import os
call("parent")
logger.flush()
if child := os.fork():
    os.waitpid(child, 0)
    call("parent again")
else:
    client = openai.OpenAI(base_url=client.base_url, api_key="none")
    call("child")
    logger.close()
    os._exit(0)
"""
    run(program, provider, collector.url)
    prompts = [sent["llm.input_messages.0.message.content"] for sent in collector.attributes()]
    assert sorted(prompts) == ["child", "parent", "parent again"]
    assert len({span.span_id for span in collector.spans()}) == 3
