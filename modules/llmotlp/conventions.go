package llmotlp

import (
	"strings"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
)

// This file is the table of conventions: which attributes have what, in the order in which they
// are asked, and what their values mean. A convention that is not in it is read by the words of
// its names, if it names a model and a usage.
//
//   - OpenTelemetry's GenAI conventions, old and new: gen_ai.*
//     https://github.com/open-telemetry/semantic-conventions-genai
//   - OpenLLMetry: llm.*, gen_ai.*, traceloop.*
//     https://www.traceloop.com/docs/openllmetry/contributing/semantic-conventions
//   - OpenInference: openinference.*, llm.*, embedding.*, reranker.*, input.*, output.*, metadata
//     https://arize-ai.github.io/openinference/spec/
//   - Vercel's AI SDK: ai.*  https://ai-sdk.dev/docs/ai-sdk-core/telemetry
//   - Langfuse: langfuse.*  https://langfuse.com/integrations/native/opentelemetry
//   - LangSmith: langsmith.*  https://docs.langchain.com/langsmith/trace-with-opentelemetry
//   - MLflow: mlflow.*, whose values are JSON  https://mlflow.org/docs/latest/genai/tracing/
//   - Genkit: genkit:*  https://genkit.dev/docs/observability/
//   - Mastra: mastra.*  https://mastra.ai/docs/observability/tracing/overview
//   - OpenLIT: gen_ai.*, with Anthropic's own counts  https://docs.openlit.io/latest/sdk/overview
//   - Logfire and Pydantic AI: logfire.*, request_data, response_data
//   - Claude Code: span.type, input_tokens  https://code.claude.com/docs/en/monitoring-usage
//   - Codex: one span has the model, and another within has the usage
//     https://github.com/openai/codex/blob/main/codex-rs/core/src/session/turn.rs

// operations are the kinds of spans that are calls of models, by their normalized names, each
// with the dialect in which Weir keeps the content.
var operations = map[string]plugins.Dialect{
	"chat": plugins.Chat, "chatcompletion": plugins.Chat, "chatcompletions": plugins.Chat, "chatmodel": plugins.Chat,
	"completion": plugins.Chat, "completions": plugins.Chat, "acompletion": plugins.Chat, "textcompletion": plugins.Chat, "atextcompletion": plugins.Chat,
	"responses": plugins.Chat, "aresponses": plugins.Chat, "response": plugins.Chat,
	"message": plugins.Chat, "messages": plugins.Chat, "anthropicmessages": plugins.Chat,
	"generatecontent": plugins.Chat, "ageneratecontent": plugins.Chat, "agenerate": plugins.Chat, "generate": plugins.Chat,
	"generation": plugins.Chat, "modelgeneration": plugins.Chat, "llmgeneration": plugins.Chat, "textgeneration": plugins.Chat,
	"llm": plugins.Chat, "llmrequest": plugins.Chat, "model": plugins.Chat, "inference": plugins.Chat,
	"embeddings": plugins.Embeddings, "embedding": plugins.Embeddings, "aembedding": plugins.Embeddings, "embed": plugins.Embeddings,
	"embedder": plugins.Embeddings, "embedcontent": plugins.Embeddings,
	"rerank": plugins.Unknown, "reranker": plugins.Unknown, "arerank": plugins.Unknown, "reranking": plugins.Unknown,
	// Vercel's AI SDK: an operation is a call of a model if it does something.
	"dogenerate": plugins.Chat, "dostream": plugins.Chat, "doembed": plugins.Embeddings, "dorerank": plugins.Unknown,
}

// aggregates are the kinds of spans that are the work around calls. Their usage, if they have
// any, is that of the calls within.
var aggregates = map[string]bool{
	"agent": true, "agentrun": true, "agentstep": true, "invokeagent": true, "createagent": true, "agentinvocation": true, "invokeworkflow": true,
	"workflow": true, "workflowrun": true, "workflowstep": true, "task": true, "step": true, "chain": true, "flow": true, "graph": true, "session": true, "interaction": true,
	"modelstep": true, "modelchunk": true, "llmstep": true, "llmchunk": true,
	"tool": true, "toolcall": true, "executetool": true, "function": true, "mcptoolcall": true, "action": true, "handoff": true, "plan": true,
	"retriever": true, "retrieval": true, "vectorstore": true, "memory": true, "searchmemory": true, "updatememory": true,
	"guardrail": true, "evaluator": true, "evaluate": true, "evaluation": true, "prompt": true, "prompttemplate": true, "parser": true,
	"span": true, "event": true, "util": true, "component": true, "pipeline": true, "trace": true,
}

// codexCall is the name of Codex' span of a call, which has the model. codexUsage is an attribute of
// the span within that has the usage, and no model.
const (
	codexCall  = "try_run_sampling_request"
	codexUsage = "codex.usage.total_tokens"
)

// kindNames are the attributes that say of which kind a span is.
var kindNames = []string{
	"gen_ai.operation.name", "llm.request.type", "openinference.span.kind", observation + "type", "mlflow.spanType",
	"ai.operationId", "genkit:metadata:subtype", "langsmith.span.kind", "mastra.span.type", "span.type", "llm.operation", "traceloop.span.kind", "operation.name",
}

// kind normalizes the name of a kind: ai.generateText.doGenerate is dogenerate, TEXT_COMPLETION
// is textcompletion.
func kind(name string) string {
	name, _, _ = strings.Cut(strings.Trim(name, `" `), " ") // AI SDK adds the name of the function
	if strings.HasPrefix(name, "ai.") {
		if name = name[strings.LastIndexByte(name, '.')+1:]; !strings.HasPrefix(name, "do") {
			return "step" // around the operations that do something
		}
	}
	return noPunctuation.Replace(strings.ToLower(name))
}

var noPunctuation = strings.NewReplacer("_", "", "-", "", ".", "", ":", "")

// The attributes of a call.
var (
	requestedNames = []string{
		"gen_ai.request.model", "llm.request.model_name", observation + "model.name", "ai.model.id", "mlflow.llm.model", "langsmith.metadata.ls_model_name", "genkit:name",
	}
	// A model that an instrumentation does not call that of the request or of the response.
	modelNames     = []string{"llm.model_name", "embedding.model_name", "reranker.model_name", "llm.model", "model"}
	respondedNames = []string{"gen_ai.response.model", "llm.response.model_name", "llm.response.model", "ai.response.model"}

	providerNames = []string{
		"gen_ai.provider.name", "gen_ai.system", "llm.provider", "ai.model.provider", "mlflow.llm.provider", "langsmith.metadata.ls_provider", "langsmith.internal_provider", "llm.system",
	}

	responseIDNames = []string{"gen_ai.response.id", "llm.response.id", "ai.response.id", "response_id"}
	finishNames     = []string{
		"gen_ai.response.finish_reason", "gen_ai.response.stop_reason", "gen_ai.completion.0.finish_reason",
		"llm.response.finish_reason", "llm.response.stop_reason", "llm.finish_reason", "ai.response.finishReason", "stop_reason",
	}
	tierNames   = []string{"gen_ai.openai.response.service_tier", "openai.response.service_tier", "gen_ai.response.service_tier"}
	streamNames = []string{"gen_ai.request.stream", "gen_ai.is_streaming", "llm.is_streaming", "langsmith.request.streaming", "request_stream"}
	costNames   = []string{"gen_ai.usage.total_cost", "llm.cost.total"}

	// The time to the first content of a stream.
	firstTokenSeconds = []string{"gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token", "gen_ai.client.operation.time_to_first_chunk"}
	firstTokenMillis  = []string{"ai.response.msToFirstChunk", "ai.response.msToFirstOutputChunk", "ai.stream.msToFirstChunk", "ttft_ms"}
	firstTokenTimes   = []string{observation + "completion_start_time", "mastra.completion_start_time", "gen_ai.completion_start_time"}
	firstTokenEvents  = []string{
		"llm.content.completion.chunk", "gen_ai.content.completion.chunk", // OpenLLMetry
		"First Token Stream Event", // OpenInference
		"ai.stream.firstChunk",
	}

	statusNames = []string{"http.response.status_code", "http.status_code", "error.type", "status_code", "error.code", "error.status_code"}

	userNames    = []string{"user.id", "enduser.id", association + "user_id", "gen_ai.user", "gen_ai.user.id", "llm.user", "langfuse.user.id", "mlflow.trace.user", "mlflow.user"}
	sessionNames = []string{
		"session.id", "gen_ai.conversation.id", association + "session_id", "langfuse.session.id", "mlflow.trace.session", "langsmith.trace.session_id",
		"gcp.vertex.agent.session_id", "conversation.id",
	}
)

// taskNames are the attributes that name the task of an application to which a call belongs. Each library has its own
// idea of them, and they become properties under their own names.
var taskNames = []string{"traceloop.workflow.name", "traceloop.entity.path"}

// metadataPrefixes begin the attributes that an application gives its calls, and metadataNames
// have them in an object. What they say of the user and of the session counts as such, and the
// rest becomes properties.
var (
	metadataPrefixes = []string{association, "ai.telemetry.metadata.", "ai.settings.context.", "langsmith.metadata.", "mastra.metadata.", "genkit:metadata:context:", observation + "metadata.", "langfuse.trace.metadata."}
	metadataNames    = []string{"metadata", "mastra.metadata", "genkit:metadata:context"}

	metadataUsers    = map[string]bool{"user": true, "userid": true, "enduserid": true, "langfuseuserid": true}
	metadataSessions = map[string]bool{"session": true, "sessionid": true, "threadid": true, "conversationid": true, "langfusesessionid": true}
)

// library tells which library reports a span, for people who ask why a span was not counted.
func library(scope, resource string) metric.Label {
	if scope == "ai" {
		return aiSDK
	}
	for _, name := range []string{scope, resource} {
		for _, l := range libraries {
			if strings.Contains(strings.ToLower(name), l.name) {
				return l.label
			}
		}
	}
	return metric.Other
}

// libraries are known by a part of the name of their instrumentation scope, or of their service.
var libraries = []struct {
	name  string
	label metric.Label
}{
	{"openlit", openLIT},
	{"openinference", metric.Constant("OpenInference")},
	{"langfuse", metric.Constant("Langfuse")},
	{"langsmith", metric.Constant("LangSmith")},
	{"mastra", metric.Constant("Mastra")},
	{"genkit", metric.Constant("Genkit")},
	{"mlflow", metric.Constant("MLflow")},
	{"pydantic", metric.Constant("Pydantic AI")},
	{"logfire", metric.Constant("Logfire")},
	{"strands", metric.Constant("Strands")},
	{"litellm", metric.Constant("LiteLLM")},
	{"haystack", metric.Constant("Haystack")},
	{"gcp.vertex.agent", metric.Constant("Google ADK")},
	{"semantic_kernel", metric.Constant("Semantic Kernel")},
	{"agent_framework", metric.Constant("Agent Framework")},
	{"com.anthropic.claude_code", metric.Constant("Claude Code")},
	{"claude-code", metric.Constant("Claude Code")},
	{"com.anthropic", metric.Constant("Anthropic")},
	{"codex", metric.Constant("Codex")},
	{"opentelemetry.instrumentation", metric.Constant("OpenTelemetry for Python")},
	{"@traceloop", metric.Constant("OpenLLMetry")},
	{"@opentelemetry", metric.Constant("OpenTelemetry for JavaScript")},
}

var (
	aiSDK   = metric.Constant("AI SDK") // Vercel's, whose scope is "ai"
	openLIT = metric.Constant("OpenLIT")
)
