"""Tries frameworks with each model that it is given, in the formats that they speak."""

import asyncio
import os
import warnings

from trials import ANSWER, CALL, KEY, RETURNED, SAID, SCHEMA, WEATHER, Answer, equal, main

warnings.simplefilter("ignore")
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_AGENTS_DISABLE_TRACING": "1"}

import agents
import anthropic
import instructor
import litellm
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, LLMMetadata
from llama_index.llms.openai import OpenAI as LlamaChat
from llama_index.llms.openai import OpenAIResponses as LlamaResponses


@tool
def get_weather(location: str) -> str:
    """The weather of a place."""
    return "sunny"


def langchain(llm):
    def stream():
        whole = None
        for chunk in llm.stream("hi"):
            whole = chunk if whole is None else whole + chunk
        equal(whole.text, SAID)

    def tools():
        bound = llm.bind_tools([get_weather])
        history = [HumanMessage(CALL)]
        history.append(bound.invoke(history))
        call = history[-1].tool_calls[0]
        history.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
        equal(bound.invoke(history).text, RETURNED)

    return {
        "text": lambda: equal(llm.invoke("hi").text, SAID),
        "stream": stream,
        "tools": tools,
        "schema": lambda: equal(llm.with_structured_output(Answer, method="json_schema").invoke("hi"), ANSWER),
    }


def langchain_openai(**options):
    def make(base_url, model):
        return langchain(ChatOpenAI(model=model, base_url=base_url + "/v1", api_key=KEY, max_retries=0, **options))

    return make


def langchain_messages(base_url, model):
    return langchain(ChatAnthropic(model=model, base_url=base_url, api_key=KEY, max_retries=0, max_tokens=1000))


def llama_index(kind):
    def make(base_url, model):
        class Known(kind):  # which knows the models of OpenAI alone
            @property
            def metadata(self):
                return LLMMetadata(model_name=model, is_chat_model=True, is_function_calling_model=True)

            def _tokenizer(self):
                return None

        llm = Known(model=model, api_base=base_url + "/v1", api_key=KEY, max_retries=0)

        async def ask():
            agent = FunctionAgent(tools=[weather], llm=llm, streaming=False)
            return str(await agent.run(CALL))

        def weather(location: str) -> str:
            """The weather of a place."""
            return "sunny"

        weather.__name__ = "get_weather"
        hi = [ChatMessage("hi")]
        return {
            "text": lambda: equal(str(llm.chat(hi).message.content), SAID),
            "stream": lambda: equal("".join(c.delta or "" for c in llm.stream_chat(hi)), SAID),
            "tools": lambda: equal(asyncio.run(ask()), RETURNED),
            "schema": lambda: equal(llm.as_structured_llm(Answer).chat(hi).raw, ANSWER),
        }

    return make


def litellm_completion(prefix, path):
    def make(base_url, model):
        options = {"model": prefix + model, "api_base": base_url + path, "api_key": KEY, "num_retries": 0, "max_tokens": 1000}
        hi = [{"role": "user", "content": "hi"}]

        def content(**more):
            return litellm.completion(**{"messages": hi, **options, **more}).choices[0].message

        def stream():
            chunks = litellm.completion(messages=hi, stream=True, **options)
            equal("".join(c.choices[0].delta.content or "" for c in chunks), SAID)

        def tools():
            functions = [{"type": "function", "function": {**WEATHER, "parameters": SCHEMA}}]
            history = [{"role": "user", "content": CALL}]
            history.append(content(messages=history, tools=functions))
            history.append({"role": "tool", "tool_call_id": history[-1].tool_calls[0].id, "content": "sunny"})
            equal(content(messages=history, tools=functions).content, RETURNED)

        return {
            "text": lambda: equal(content().content, SAID),
            "stream": stream,
            "tools": tools,
            "schema": lambda: equal(Answer.model_validate_json(content(response_format=Answer).content), ANSWER),
        }

    return make


def litellm_responses(base_url, model):
    options = {"model": "openai/" + model, "api_base": base_url + "/v1", "api_key": KEY, "num_retries": 0}

    def text(answer):
        return "".join(p.text for i in answer.output if i.type == "message" for p in i.content)

    def ask(input, **more):
        return litellm.responses(input=input, **options, **more)

    def stream():
        equal("".join(e.delta for e in ask("hi", stream=True) if e.type == "response.output_text.delta"), SAID)

    def tools():
        functions = [{"type": "function", **WEATHER, "parameters": SCHEMA, "strict": True}]
        history = [{"role": "user", "content": CALL}]
        answer = ask(history, tools=functions)
        (call,) = [i for i in answer.output if i.type == "function_call"]
        history += [call.model_dump(exclude_none=True), {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        equal(text(ask(history, tools=functions)), RETURNED)

    def schema():
        equal(Answer.model_validate_json(text(ask("hi", text_format=Answer))), ANSWER)

    return {"text": lambda: equal(text(ask("hi")), SAID), "stream": stream, "tools": tools, "schema": schema}


def instructor_mode(mode):
    """It asks for nothing but answers by a schema, which the model gives by a call."""

    def make(base_url, model):
        if mode == instructor.Mode.ANTHROPIC_TOOLS:
            client = instructor.from_anthropic(anthropic.Anthropic(api_key=KEY, base_url=base_url, max_retries=0), mode=mode)
            options = {"max_tokens": 1000}
        else:
            client = instructor.from_openai(openai.OpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0), mode=mode)
            options = {}
        hi = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_retries": 1, **options}

        def schema():
            equal(client.create(response_model=Answer, **hi), ANSWER)

        def stream():
            *_, last = client.create_partial(response_model=Answer, **hi)
            equal(last, ANSWER)

        return {"text": lambda: None, "stream": stream, "tools": lambda: None, "schema": schema}

    return make


def agents_python(kind):
    def make(base_url, model):
        def llm():  # of a loop of its own
            client = openai.AsyncOpenAI(api_key=KEY, base_url=base_url + "/v1", max_retries=0)
            return kind(model=model, openai_client=client)

        @agents.function_tool(name_override="get_weather")
        def weather(location: str) -> str:
            """The weather of a place."""
            return "sunny"

        async def ask(input, session=None, **options):
            agent = agents.Agent(name="compat", model=llm(), **options)
            return (await agents.Runner.run(agent, input, session=session)).final_output

        async def text():
            session = agents.SQLiteSession("compat")
            equal(await ask("first", session), "You said: first")
            equal(await ask("hi", session), SAID)

        async def stream():
            result = agents.Runner.run_streamed(agents.Agent(name="compat", model=llm()), "hi")
            async for _ in result.stream_events():
                pass
            equal(result.final_output, SAID)

        async def tools():
            equal(await ask(CALL, tools=[weather]), RETURNED)

        async def schema():
            equal(await ask("hi", output_type=Answer), ANSWER)

        def run(task):
            return lambda: asyncio.run(task())

        return {"text": run(text), "stream": run(stream), "tools": run(tools), "schema": run(schema)}

    return make


main(
    {
        "agents-python": agents_python(agents.OpenAIResponsesModel),
        "agents-python chat": agents_python(agents.OpenAIChatCompletionsModel),
        "langchain": langchain_openai(use_responses_api=True),
        "langchain chat": langchain_openai(),
        "langchain messages": langchain_messages,
        "llama-index": llama_index(LlamaResponses),
        "llama-index chat": llama_index(LlamaChat),
        "litellm": litellm_responses,
        "litellm chat": litellm_completion("openai/", "/v1"),
        "litellm messages": litellm_completion("anthropic/", ""),
        "instructor RESPONSES_TOOLS": instructor_mode(instructor.Mode.RESPONSES_TOOLS),
        "instructor TOOLS": instructor_mode(instructor.Mode.TOOLS),
        "instructor ANTHROPIC_TOOLS": instructor_mode(instructor.Mode.ANTHROPIC_TOOLS),
    }
)
