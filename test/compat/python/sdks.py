"""Tries the official SDKs of OpenAI and Anthropic with each model that it is given."""

import json

import anthropic
import openai
from trials import ANSWER, CALL, KEY, RETURNED, SAID, SCHEMA, WEATHER, Answer, equal, main


def responses(base_url, model):
    client = openai.OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0).responses

    def stream():
        with client.stream(model=model, input="hi") as events:
            equal(events.get_final_response().output_text, SAID)

    def tools():
        functions = [{"type": "function", **WEATHER, "parameters": SCHEMA, "strict": True}]
        first = client.create(model=model, input=[{"role": "user", "content": CALL}], tools=functions)
        (call,) = [i for i in first.output if i.type == "function_call"]
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        history = [{"role": "user", "content": CALL}, *first.output, output]
        equal(client.create(model=model, input=history, tools=functions).output_text, RETURNED)

    return {
        "text": lambda: equal(client.create(model=model, input="hi").output_text, SAID),
        "stream": stream,
        "tools": tools,
        "schema": lambda: equal(client.parse(model=model, input="hi", text_format=Answer).output_parsed, ANSWER),
    }


def conversations(base_url, model):
    """The conversation is what the gateway keeps: each call has only what is new."""
    client = openai.OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0)

    def after(input):
        request = {"model": model, "conversation": client.conversations.create().id}
        equal(client.responses.create(input="first", **request).output_text, "You said: first")
        return {**request, "input": input}

    def text():
        request = after("hi")
        equal(client.responses.create(**request).output_text, SAID)
        items = client.conversations.items.list(request["conversation"], order="asc")
        equal([item.role for item in items], ["user", "assistant", "user", "assistant"])

    def stream():
        with client.responses.stream(**after("hi")) as events:
            equal(events.get_final_response().output_text, SAID)

    def tools():
        request = {**after(CALL), "tools": [{"type": "function", **WEATHER, "parameters": SCHEMA, "strict": True}]}
        (call,) = [i for i in client.responses.create(**request).output if i.type == "function_call"]
        request["input"] = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        equal(client.responses.create(**request).output_text, RETURNED)

    def schema():
        equal(client.responses.parse(**after("hi"), text_format=Answer).output_parsed, ANSWER)

    return {"text": text, "stream": stream, "tools": tools, "schema": schema}


def chat(base_url, model):
    client = openai.OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0).chat.completions
    hi = [{"role": "user", "content": "hi"}]

    def stream():
        with client.stream(model=model, messages=hi) as events:
            equal(events.get_final_completion().choices[0].message.content, SAID)

    def tools():
        functions = [{"type": "function", "function": {**WEATHER, "parameters": SCHEMA}}]
        messages = [{"role": "user", "content": CALL}]
        answer = client.create(model=model, messages=messages, tools=functions).choices[0].message
        messages += [answer, {"role": "tool", "tool_call_id": answer.tool_calls[0].id, "content": "sunny"}]
        equal(client.create(model=model, messages=messages, tools=functions).choices[0].message.content, RETURNED)

    def schema():
        equal(client.parse(model=model, messages=hi, response_format=Answer).choices[0].message.parsed, ANSWER)

    return {
        "text": lambda: equal(client.create(model=model, messages=hi).choices[0].message.content, SAID),
        "stream": stream,
        "tools": tools,
        "schema": schema,
    }


def messages(base_url, model):
    client = anthropic.Anthropic(api_key=KEY, base_url=base_url, max_retries=0).messages
    hi = {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}

    def text(answer):
        return "".join(block.text for block in answer.content if block.type == "text")

    def stream():
        with client.stream(**hi) as events:
            equal(text(events.get_final_message()), SAID)

    def tools():
        asked = {"role": "user", "content": CALL}
        request = {**hi, "messages": [asked], "tools": [{**WEATHER, "input_schema": SCHEMA}]}
        answer = client.create(**request)
        (use,) = [block for block in answer.content if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}
        request["messages"] = [asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        equal(text(client.create(**request)), RETURNED)

    def schema():
        output_config = {"format": {"type": "json_schema", "schema": {**Answer.model_json_schema(), "additionalProperties": False}}}
        equal(Answer.model_validate(json.loads(text(client.create(**hi, output_config=output_config)))), ANSWER)

    return {"text": lambda: equal(text(client.create(**hi)), SAID), "stream": stream, "tools": tools, "schema": schema}


main({"openai-python responses": responses, "openai-python conversations": conversations, "openai-python chat": chat, "anthropic-python": messages})
