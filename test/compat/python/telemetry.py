"""Makes calls with one library that reports over OpenTelemetry, as its users set it up:
telemetry.py SETUP. The provider is at PROVIDER_URL, and the exporter's variables name Weir. Each
set-up asks plainly, for a stream, with a tool, and wrongly, as far as its library can."""

import asyncio
import os
import sys
import time
import warnings

warnings.filterwarnings("ignore")
PROVIDER = os.environ["PROVIDER_URL"]
OPENAI, ANTHROPIC, GEMINI = "gpt-5-mini", "claude-sonnet-4-5", "gemini-2.5-flash"
EMBEDDING = "text-embedding-3-small"
os.environ |= {
    "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "GEMINI_API_KEY": "none", "GOOGLE_API_KEY": "none", "MISTRAL_API_KEY": "none", "GROQ_API_KEY": "none", 
    "OPENAI_BASE_URL": PROVIDER + "/v1", "OPENAI_API_BASE": PROVIDER + "/v1", "ANTHROPIC_BASE_URL": PROVIDER, "GOOGLE_GEMINI_BASE_URL": PROVIDER,
    "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1",
    "OTEL_METRICS_EXPORTER": "none", "HAYSTACK_TELEMETRY_ENABLED": "false", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true", "OPENAI_CHAT_MODEL_ID": OPENAI,
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
ASK = [{"role": "user", "content": "What is this?"}]
WRONG = [{"role": "user", "content": "Please fail."}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": WEATHER}}


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The city.
    """
    return "sunny in " + city


def tracing():
    """The tracer provider of an application, which exports what OTEL_EXPORTER_OTLP_* name."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    provider = TracerProvider()
    processor = SimpleSpanProcessor if os.environ.get("ONE_BY_ONE") else BatchSpanProcessor
    provider.add_span_processor(processor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def refused(call):
    """Makes a call that the provider refuses."""
    try:
        call()
    except Exception:
        return
    # Some frameworks answer a refused call with a text.


# The calls.


def openai_chat(client=None):
    from openai import OpenAI

    client = client or OpenAI(max_retries=0)
    client.chat.completions.create(model=OPENAI, messages=ASK)
    for _ in client.chat.completions.create(model=OPENAI, messages=ASK, stream=True, stream_options={"include_usage": True}):
        pass
    first = client.chat.completions.create(model=OPENAI, messages=ASK, tools=[TOOL]).choices[0].message
    answer = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "sunny"}
    client.chat.completions.create(model=OPENAI, messages=[*ASK, first.model_dump(exclude_none=True), answer], tools=[TOOL])
    refused(lambda: client.chat.completions.create(model=OPENAI, messages=WRONG))

    async def asynchronous():
        from openai import AsyncOpenAI

        await AsyncOpenAI(max_retries=0).chat.completions.create(model=OPENAI, messages=ASK)

    asyncio.run(asynchronous())


def openai_responses():
    from openai import OpenAI

    client = OpenAI(max_retries=0)
    client.responses.create(model=OPENAI, input="What is this?")
    for _ in client.responses.create(model=OPENAI, input="What is this?", stream=True):
        pass
    refused(lambda: client.responses.create(model=OPENAI, input="Please fail."))


def openai_embeddings():
    from openai import OpenAI

    OpenAI(max_retries=0).embeddings.create(model=EMBEDDING, input=["a", "b"])


def anthropic_messages(client=None):
    from anthropic import Anthropic

    client = client or Anthropic(max_retries=0)
    ask = {"model": ANTHROPIC, "max_tokens": 500, "messages": ASK}
    tools = [{"name": "get_weather", "description": "The weather.", "input_schema": WEATHER}]
    client.messages.create(**ask)
    for _ in client.messages.create(**ask, stream=True):
        pass
    with client.messages.stream(**ask) as stream:
        stream.get_final_message()
    client.messages.create(**ask, tools=tools)
    refused(lambda: client.messages.create(**ask | {"messages": WRONG}))


def google_genai():
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=PROVIDER))
    client.models.generate_content(model=GEMINI, contents="What is this?")
    for _ in client.models.generate_content_stream(model=GEMINI, contents="What is this?"):
        pass
    refused(lambda: client.models.generate_content(model=GEMINI, contents="Please fail."))


def mistral():
    from mistralai.client import Mistral

    client = Mistral(api_key="none", server_url=PROVIDER + "/mistral")
    client.chat.complete(model="mistral-small-latest", messages=ASK)
    for _ in client.chat.stream(model="mistral-small-latest", messages=ASK):
        pass
    client.chat.complete(model="mistral-small-latest", messages=ASK, tools=[TOOL])
    refused(lambda: client.chat.complete(model="mistral-small-latest", messages=WRONG))


def groq():
    from groq import Groq

    client = Groq(base_url=PROVIDER + "/groq", max_retries=0)
    client.chat.completions.create(model="llama-3.3-70b-versatile", messages=ASK)
    for _ in client.chat.completions.create(model="llama-3.3-70b-versatile", messages=ASK, stream=True):
        pass
    client.chat.completions.create(model="llama-3.3-70b-versatile", messages=ASK, tools=[TOOL])
    refused(lambda: client.chat.completions.create(model="llama-3.3-70b-versatile", messages=WRONG))


def bedrock():
    import boto3

    client = boto3.client("bedrock-runtime", endpoint_url=PROVIDER)
    ask = {"modelId": "anthropic.claude-3-haiku-20240307-v1:0", "messages": [{"role": "user", "content": [{"text": "What is this?"}]}]}
    client.converse(**ask)
    client.converse(**ask, toolConfig={"tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": WEATHER}}}]})
    refused(lambda: client.converse(**ask | {"messages": [{"role": "user", "content": [{"text": "Please fail."}]}]}))


def litellm_calls():
    import litellm

    litellm.suppress_debug_info = True
    for model in ("openai/" + OPENAI, "anthropic/" + ANTHROPIC):
        litellm.completion(model=model, messages=ASK)
        for _ in litellm.completion(model=model, messages=ASK, stream=True, stream_options={"include_usage": True}):
            pass
        litellm.completion(model=model, messages=ASK, tools=[TOOL])
        refused(lambda model=model: litellm.completion(model=model, messages=WRONG))

    async def asynchronous():
        from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

        await litellm.acompletion(model="openai/" + OPENAI, messages=ASK)
        await GLOBAL_LOGGING_WORKER.flush()  # the loop of an application goes on
        await asyncio.sleep(1)

    asyncio.run(asynchronous())
    litellm.embedding(model="openai/" + EMBEDDING, input=["a"])


def llama_index():
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai import OpenAI

    model = OpenAI(model=OPENAI, max_retries=0, additional_kwargs={"stream_options": {"include_usage": True}})
    plain = OpenAI(model=OPENAI, max_retries=0)
    plain.chat([ChatMessage("What is this?")])
    plain.complete("What is this?")
    for _ in model.stream_chat([ChatMessage("What is this?")]):
        pass
    refused(lambda: plain.chat([ChatMessage("Please fail.")]))


def openai_agents():
    from agents import Agent, Runner, function_tool

    agent = Agent(name="a", model=OPENAI, tools=[function_tool(get_weather)])
    Runner.run_sync(agent, "What is the weather?")
    refused(lambda: Runner.run_sync(Agent(name="b", model=OPENAI), "Please fail."))


def smolagents():
    from smolagents import OpenAIServerModel

    model = OpenAIServerModel(OPENAI, api_base=PROVIDER + "/v1", api_key="none")
    model([{"role": "user", "content": [{"type": "text", "text": "What is this?"}]}])
    refused(lambda: model([{"role": "user", "content": [{"type": "text", "text": "Please fail."}]}]))


def haystack():
    from haystack import Pipeline
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage

    pipeline = Pipeline()
    pipeline.add_component("llm", OpenAIChatGenerator(model=OPENAI))
    pipeline.run({"llm": {"messages": [ChatMessage.from_user("What is this?")]}})
    refused(lambda: pipeline.run({"llm": {"messages": [ChatMessage.from_user("Please fail.")]}}))


def agno():
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat

    Agent(model=OpenAIChat(id=OPENAI), tools=[get_weather], telemetry=False).run("What is the weather?")


def langchain():
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    models = ChatOpenAI(model=OPENAI, max_retries=0, stream_usage=True), ChatOpenAI(model=OPENAI, max_retries=0, use_responses_api=True), ChatAnthropic(model=ANTHROPIC, max_retries=0)
    for model in models:
        model.invoke("What is this?")
        for _ in model.stream("What is this?"):
            pass
        create_agent(model, tools=[get_weather]).invoke({"messages": [("user", "What is the weather?")]})
        refused(lambda model=model: model.invoke("Please fail."))

    async def asynchronous():
        for model in models:
            await model.ainvoke("What is this?")

    asyncio.run(asynchronous())
    OpenAIEmbeddings(model=EMBEDDING, check_embedding_ctx_length=False).embed_query("a")


def crewai():
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    for model in ("openai/" + OPENAI, "anthropic/" + ANTHROPIC):
        llm = LLM(model=model, max_tokens=500) if "anthropic" in model else LLM(model=model)
        llm.call("What is this?")
        agent = Agent(role="reporter", goal="Tell the weather.", backstory="You report.", llm=llm, tools=[tool("get_weather")(get_weather)])
        Crew(agents=[agent], tasks=[Task(description="Tell the weather.", expected_output="The weather.", agent=agent)]).kickoff()
        refused(lambda llm=llm: llm.call("Please fail."))


def dspy():
    import dspy

    for model in ("openai/" + OPENAI, "anthropic/" + ANTHROPIC):
        lm = dspy.LM(model, cache=False, num_retries=0, temperature=1.0, max_tokens=16000)
        lm("What is this?")
        with dspy.context(lm=lm):
            refused(lambda: dspy.Predict("question -> answer")(question="What is this?"))  # the answer has no fields
            refused(lambda: dspy.Predict("question -> answer")(question="Please fail."))
    dspy.Embedder("openai/" + EMBEDDING, caching=False)(["a"])


def adk():
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    runner = InMemoryRunner(agent=LlmAgent(name="a", model=GEMINI, tools=[get_weather]), app_name="app")

    async def run():
        session = await runner.session_service.create_session(app_name="app", user_id="ada")
        async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=types.Content(role="user", parts=[types.Part(text="What is the weather?")])):
            pass

    asyncio.run(run())


def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    Agent.instrument_all()
    for model in (OpenAIChatModel(OPENAI), OpenAIResponsesModel(OPENAI), AnthropicModel(ANTHROPIC)):
        agent = Agent(model, tools=[get_weather])
        agent.run_sync("What is the weather?")
        refused(lambda agent=agent: agent.run_sync("Please fail."))

        async def stream(agent=Agent(model)):
            async with agent.run_stream("What is this?") as answer:
                await answer.get_output()

        asyncio.run(stream())


def strands():
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"api_key": "none", "base_url": PROVIDER + "/v1", "max_retries": 0}, model_id=OPENAI)
    Agent(model=model, tools=[tool(get_weather)], callback_handler=None)("What is the weather?")
    refused(lambda: Agent(model=model, callback_handler=None)("Please fail."))


def semantic_kernel():
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
    from semantic_kernel.contents import ChatHistory

    async def run():
        service, settings = OpenAIChatCompletion(ai_model_id=OPENAI), OpenAIChatPromptExecutionSettings()

        def ask(text):
            history = ChatHistory()
            history.add_user_message(text)
            return history

        await service.get_chat_message_contents(ask("What is this?"), settings)
        async for _ in service.get_streaming_chat_message_contents(ask("What is this?"), settings):
            pass
        try:
            await service.get_chat_message_contents(ask("Please fail."), settings)
        except Exception:
            pass

    asyncio.run(run())


# The set-ups.


def instrumented(module, name, *calls):
    """A set-up by an instrumentor."""

    def run():
        provider = tracing()
        getattr(__import__(module, fromlist=[name]), name)().instrument(tracer_provider=provider)
        for call in calls:
            call()
        provider.shutdown()

    return run


def openinference(name, instrumentor, *calls):
    return instrumented("openinference.instrumentation." + name, instrumentor + "Instrumentor", *calls)


def also(name, instrumentor):
    """Instruments one more library, as its users do beside a framework that calls it."""
    return lambda: getattr(__import__("openinference.instrumentation." + name, fromlist=[instrumentor]), instrumentor + "Instrumentor")().instrument()


def by_logfire(libraries, *calls):
    def run():
        import logfire

        logfire.configure(send_to_logfire=False, console=False)
        for library in libraries:
            getattr(logfire, "instrument_" + library)()
        for call in calls:
            call()
        logfire.shutdown()

    return run


def by_itself(*calls):
    """A library that reports with the application's tracer provider, and needs no instrumentor."""

    def run():
        provider = tracing()
        for call in calls:
            call()
        provider.shutdown()

    return run


def by_langfuse():
    from langfuse import get_client
    from langfuse.openai import OpenAI

    openai_chat(OpenAI(max_retries=0))
    get_client().shutdown()


def by_litellm():
    import litellm
    from opentelemetry import trace

    litellm.callbacks = ["otel"]
    litellm_calls()
    time.sleep(2)  # it reports in the background
    trace.get_tracer_provider().shutdown()


def by_langsmith(*calls):
    def run():
        os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}
        provider = tracing()
        for call in calls:
            call()
        from langchain_core.tracers.langchain import wait_for_all_tracers

        wait_for_all_tracers()
        provider.shutdown()

    return run


def by_openlit(*calls):
    def run():
        import openlit
        from opentelemetry import trace

        openlit.init(otlp_headers=os.environ["OTEL_EXPORTER_OTLP_TRACES_HEADERS"], disable_metrics=True)
        for call in calls:
            call()
        trace.get_tracer_provider().shutdown()

    return run


def by_traceloop(*calls):
    def run():
        from opentelemetry import trace
        from traceloop.sdk import Traceloop
        from traceloop.sdk.decorators import workflow

        Traceloop.init(app_name="app", api_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], headers={"Authorization": "Bearer weir-quickstart"}, telemetry_enabled=False)
        for call in calls:
            workflow(name="work")(call)()
        trace.get_tracer_provider().shutdown()

    return run


SDKS = also("openai", "OpenAI"), also("anthropic", "Anthropic")
SETUPS = {
    "openinference/openai": openinference("openai", "OpenAI", openai_chat, openai_responses, openai_embeddings),
    "openinference/anthropic": openinference("anthropic", "Anthropic", anthropic_messages),
    "openinference/google-genai": openinference("google_genai", "GoogleGenAI", google_genai),
    "openinference/mistralai": openinference("mistralai", "MistralAI", mistral),
    "openinference/groq": openinference("groq", "Groq", groq),
    "openinference/bedrock": openinference("bedrock", "Bedrock", bedrock),
    "openinference/litellm": openinference("litellm", "LiteLLM", litellm_calls),
    "openinference/llama-index": openinference("llama_index", "LlamaIndex", llama_index),
    "openinference/openai-agents": openinference("openai_agents", "OpenAIAgents", openai_agents),
    "openinference/smolagents": openinference("smolagents", "Smolagents", smolagents),
    "openinference/haystack": openinference("haystack", "Haystack", haystack),
    "openinference/agno": openinference("agno", "Agno", agno),
    "openinference/google-adk": openinference("google_adk", "GoogleADK", adk),
    "openinference/langchain": openinference("langchain", "LangChain", langchain),
    "openinference/dspy": openinference("dspy", "DSPy", also("litellm", "LiteLLM"), dspy),
    "openinference/crewai": openinference("crewai", "CrewAI", *SDKS, crewai),
    "openinference/langchain+sdks": openinference("langchain", "LangChain", *SDKS, langchain),
    "langsmith": by_langsmith(langchain),
    "langsmith+sdks": by_langsmith(*SDKS, langchain),
    "openlit": by_openlit(openai_chat, openai_responses, openai_embeddings, anthropic_messages),
    "openlit/langchain": by_openlit(langchain),
    "traceloop": by_traceloop(openai_chat, openai_responses, openai_embeddings, anthropic_messages),
    "traceloop/langchain": by_traceloop(langchain),
    "pydantic-ai": by_itself(pydantic_ai),
    "strands": by_itself(strands),
    "semantic-kernel": by_itself(semantic_kernel),
    "anthropic": by_itself(anthropic_messages),
    "logfire/openai": by_logfire(["openai", "anthropic"], openai_chat, openai_responses, openai_embeddings),
    "logfire/anthropic": by_logfire(["openai", "anthropic"], anthropic_messages),
    "logfire/litellm": by_logfire(["litellm"], litellm_calls),
    "logfire/openai-agents": by_logfire(["openai_agents"], openai_agents),
    "langfuse": by_langfuse,
    "litellm": by_litellm,
    "openllmetry/openai": instrumented("opentelemetry.instrumentation.openai", "OpenAIInstrumentor", openai_chat, openai_responses, openai_embeddings),
    "openllmetry/anthropic": instrumented("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor", anthropic_messages),
    "google-adk": by_itself(adk),
    "opentelemetry/openai": instrumented("opentelemetry.instrumentation.genai.openai", "OpenAIInstrumentor", openai_chat, openai_responses, openai_embeddings),
    "opentelemetry/anthropic": instrumented("opentelemetry.instrumentation.genai.anthropic", "AnthropicInstrumentor", anthropic_messages),
    "opentelemetry/langchain": instrumented("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor", langchain),
    "opentelemetry/google-genai": instrumented("opentelemetry.instrumentation.google_genai", "GoogleGenAiSdkInstrumentor", google_genai),
}

if __name__ == "__main__":
    SETUPS[sys.argv[1]]()
