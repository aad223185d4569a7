"""Holds requests to providers, and answers to clients, against the types that the vendors publish.

Reads one JSON object a line: {"kind", "path", "body"} is a request to the vendor of a kind of provider, {"path", "answer"}
what a client got. Writes a line for each that the vendor's types do not take, with what is wrong.
"""

import inspect
import json
import sys
import typing
import warnings

warnings.simplefilter("ignore")  # of types that take other fields, and say so

# Iterables are validated when they are read, which is too late to choose a member of a union.
typing.Iterable = typing.List

import anthropic.types
import anthropic.types.beta
import anthropic.types.beta.message_create_params as messages_params
import botocore.session
import botocore.validate
import cerebras.cloud.sdk.types.chat.completion_create_params as cerebras_params
import cohere.core.unchecked_base_model
import cohere.v2.raw_client
import fireworks.types.chat.completion_create_params as fireworks_params
import groq.types.chat.completion_create_params as groq_params
import mistralai.client.models.chatcompletionrequest as mistral
import mistralai.client.types
import openai.types.chat
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses
import openai.types.responses.response_create_params as responses_params
import openrouter.components.chatrequest as openrouter
import openrouter.types as openrouter_types
import perplexity.types.response_create_params as perplexity_params
import together.types.chat.completion_create_params as together_params
from google.genai import types as gemini
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model


class GenerateContentRequest(BaseModel):
    """The body of generateContent, of which the library has the parts alone."""

    model_config = ConfigDict(extra="forbid")

    contents: typing.List[gemini.Content]
    systemInstruction: typing.Optional[gemini.Content] = None
    tools: typing.Optional[typing.List[gemini.Tool]] = None
    toolConfig: typing.Optional[gemini.ToolConfig] = None
    safetySettings: typing.Optional[typing.List[gemini.SafetySetting]] = None
    generationConfig: typing.Optional[gemini.GenerationConfig] = None
    cachedContent: typing.Optional[str] = None
    serviceTier: typing.Optional[str] = None
    labels: typing.Optional[typing.Dict[str, str]] = None


def closed(of_object, of_stream):
    """The adapters of a request's parameters, which take no field that the vendor does not have."""
    for parameters in (of_object, of_stream):
        parameters.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return {False: TypeAdapter(of_object), True: TypeAdapter(of_stream)}


def close(models):
    """Has models take no field that they do not have."""
    for model in models:
        model.model_config["extra"] = "forbid"
    for model in models:
        model.model_rebuild(force=True)


def below(model):
    """All models that are made of one, the parts first."""
    found = [m for child in model.__subclasses__() for m in (*below(child), child)]
    return list(dict.fromkeys(found))


# Anthropic takes the blocks of its answers, too, which have no other fields than these.
close(typing.get_args(typing.get_args(anthropic.types.beta.BetaContentBlock)[0]))
close(below(mistralai.client.types.BaseModel))
close(below(openrouter_types.BaseModel))
close(below(cohere.core.unchecked_base_model.UncheckedBaseModel))

# Cohere's library has the fields of the body as the parameters of a method.
cohere_chat = typing.get_type_hints(cohere.v2.raw_client.RawV2Client.chat, include_extras=True)
CohereChat = create_model(
    "CohereChat",
    __config__=ConfigDict(extra="forbid"),
    stream=(bool, False),
    **{
        name: (cohere_chat[name], ... if p.default is inspect.Parameter.empty else None)
        for name, p in inspect.signature(cohere.v2.raw_client.RawV2Client.chat).parameters.items()
        if name not in ("self", "request_options")
    },
)

openai_chat = closed(chat_params.CompletionCreateParamsNonStreaming, chat_params.CompletionCreateParamsStreaming)
REQUESTS = {
    ("openai", "/responses"): closed(
        responses_params.ResponseCreateParamsNonStreaming, responses_params.ResponseCreateParamsStreaming
    ),
    ("openai", "/chat/completions"): openai_chat,
    ("groq", "/chat/completions"): closed(groq_params.CompletionCreateParams, groq_params.CompletionCreateParams),
    ("anthropic", "/messages"): closed(
        messages_params.MessageCreateParamsNonStreaming, messages_params.MessageCreateParamsStreaming
    ),
    ("gemini", "enerateContent"): dict.fromkeys((False, True), TypeAdapter(GenerateContentRequest)),
    ("cerebras", "/chat/completions"): closed(
        cerebras_params.CompletionCreateParams, cerebras_params.CompletionCreateParams
    ),
    ("fireworks", "/chat/completions"): closed(
        fireworks_params.CompletionCreateParamsNonStreaming, fireworks_params.CompletionCreateParamsStreaming
    ),
    ("together", "/chat/completions"): closed(
        together_params.CompletionCreateParamsNonStreaming, together_params.CompletionCreateParamsStreaming
    ),
    ("perplexity", "/responses"): closed(
        perplexity_params.ResponseCreateParamsNonStreaming, perplexity_params.ResponseCreateParamsStreaming
    ),
    ("mistral", "/chat/completions"): dict.fromkeys((False, True), TypeAdapter(mistral.ChatCompletionRequest)),
    ("openrouter", "/chat/completions"): dict.fromkeys((False, True), TypeAdapter(openrouter.ChatRequest)),
    ("cohere", "/v2/chat"): dict.fromkeys((False, True), TypeAdapter(CohereChat)),
}
# The kinds that speak a vendor's format, and whose vendors publish no types in Python.
SPEAKS = {"azure": "openai", "vertex": "gemini"} | dict.fromkeys(
    ("compatible", "deepseek", "lmstudio", "ollama", "vercel", "vllm", "xai"), "openai"
)

ANSWERS = {
    "/v1/responses": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
    "/v1/chat/completions": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
    "/v1/messages": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
}
ANSWERS = {path: [TypeAdapter(t) for t in types] for path, types in ANSWERS.items()}

bedrock = botocore.session.get_session().get_service_model("bedrock-runtime")


# Fields that an API takes although its types lack them: the type of Groq's chunks describes the first, Anthropic's
# earlier models take the next, and the documentation of the others has theirs.
TAKEN = {
    "groq": ["stream_options"],
    "anthropic": ["temperature", "top_p", "top_k"],
    "deepseek": ["thinking"],
    "fireworks": ["stream_options"],
    "perplexity": ["temperature", "top_p", "tool_choice", "parallel_tool_calls", "metadata"],
    "together": ["stream_options"],
    "vllm": ["chat_template_kwargs"],
}


def complete_together(body):
    """Adds what Together's types demand of a call, as if it were of a stream, and removes what they lack of a function."""
    for message in body["messages"]:
        for i, call in enumerate(message.get("tool_calls", ())):
            call.setdefault("index", i)
    for tool in body.get("tools", ()):
        tool["function"].pop("strict", None)
    return body


def complete(body):
    """Adds what OpenAI's types demand and OpenAI does not: it has a default for each."""
    for tool in body.get("tools", ()):
        if tool["type"] == "function":
            tool.setdefault("strict", None)
    for i, item in enumerate(body["input"]) if isinstance(body.get("input"), list) else ():
        role, content = item.get("role"), item.get("content")
        if role == "assistant" and isinstance(content, list):
            for key, value in {"type": "message", "id": f"msg_{i}", "status": "completed"}.items():
                item.setdefault(key, value)
        elif role:
            item.pop("id", None)
        elif item.get("type") == "reasoning":
            item.setdefault("id", f"rs_{i}")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "output_text":
                part.setdefault("annotations", [])
            elif part["type"] == "input_image":
                part.setdefault("detail", "auto")
    return body


def wrong_with_request(kind, path, body):
    if "/converse" in path:
        shape = bedrock.operation_model("Converse").input_shape
        return botocore.validate.ParamValidator().validate({"modelId": "m", **body}, shape).generate_report()
    stream = body.get("stream") is True
    if path.endswith("/responses") and kind != "perplexity":
        body = complete(body)
    if kind == "together":
        body = complete_together(body)
    if path.endswith("awPredict"):  # Claude at Vertex AI
        kind, path, stream = "anthropic", "/messages", path.endswith("streamRawPredict")
        body = {"model": "m", **body}
        body.pop("anthropic_version")
    for field in TAKEN.get(kind, ()):
        body.pop(field, None)
    for (vendor, suffix), adapters in REQUESTS.items():
        if vendor == SPEAKS.get(kind, kind) and path.endswith(suffix):
            return wrong(adapters[stream], body)
    return ""


def wrong_with_answer(path, answer):
    whole, event = ANSWERS[path]
    if not answer.startswith(("event:", "data:", ":")):
        return wrong(whole, json.loads(answer))
    for line in answer.splitlines():
        if line.startswith("data: {"):
            data = json.loads(line[len("data: ") :])
            if found := "error" not in data and data.get("type") not in ("error", "ping") and wrong(event, data):
                return f"{found} in {line}"
    return ""


def wrong(adapter, value):
    """What a type does not take of a value: of the members of a union, what is wrong with the one that is nearest."""
    try:
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as e:
        errors = [f"{place(d['loc'])}: {d['msg']}" for d in e.errors() if d["type"] != "literal_error"]
        return "; ".join((errors or [str(e)])[:4])
    return ""


def place(loc):
    """The path of an error, without the names of the lists of a union, which are long."""
    return ".".join(str(part) for part in loc if "[" not in str(part))


def main():
    for line in sys.stdin:
        exchange = json.loads(line)
        if "answer" in exchange:
            found = wrong_with_answer(exchange["path"], exchange["answer"])
        else:
            found = wrong_with_request(exchange["kind"], exchange["path"], json.loads(exchange["body"]))
        if found:
            print(json.dumps({**exchange, "wrong": found}), flush=True)


if __name__ == "__main__":
    main()
