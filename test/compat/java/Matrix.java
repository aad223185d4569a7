import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.helpers.MessageAccumulator;
import com.anthropic.models.messages.ContentBlock;
import com.anthropic.models.messages.ContentBlockParam;
import com.anthropic.models.messages.Message;
import com.anthropic.models.messages.MessageCreateParams;
import com.anthropic.models.messages.Tool;
import com.anthropic.models.messages.ToolResultBlockParam;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.helpers.ResponseAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionMessage;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.responses.FunctionTool;
import com.openai.models.responses.Response;
import com.openai.models.responses.ResponseCreateParams;
import com.openai.models.responses.ResponseFunctionToolCall;
import com.openai.models.responses.ResponseInputItem;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Tries each of the clients that it reads as a JSON array on stdin with its model, and prints
 * what went wrong with each as a line of JSON. The models are echoes.
 */
public class Matrix {
    static final String KEY = "weir-quickstart";
    static final String CALL = "What is the weather? get_weather()";
    static final String SAID = "You said: hi";
    static final String RETURNED = "The tool returned: sunny";

    interface Task {
        void run() throws Exception;
    }

    static void equal(Object got, Object want) {
        if (!want.equals(got)) throw new IllegalStateException("got " + got + ", want " + want);
    }

    static OpenAIClient openai(String url) {
        return OpenAIOkHttpClient.builder().apiKey(KEY).baseUrl(url + "/v1").maxRetries(0).build();
    }

    static Map<String, Task> responses(String url, String model) {
        var service = openai(url).responses();
        var hi = ResponseCreateParams.builder().model(model).input("hi").build();
        Map<String, Task> tasks = new LinkedHashMap<>();
        tasks.put("text", () -> equal(text(service.create(hi)), SAID));
        tasks.put("stream", () -> {
            var whole = ResponseAccumulator.create();
            try (var stream = service.createStreaming(hi)) {
                stream.stream().forEach(whole::accumulate);
            }
            equal(text(whole.response()), SAID);
        });
        tasks.put("tools", () -> {
            var tool = FunctionTool.builder().name("get_weather").strict(false)
                .parameters(FunctionTool.Parameters.builder()
                    .putAdditionalProperty("type", JsonValue.from("object"))
                    .putAdditionalProperty("properties", JsonValue.from(Map.of())).build()).build();
            List<ResponseInputItem> input = new ArrayList<>();
            input.add(ResponseInputItem.ofMessage(ResponseInputItem.Message.builder()
                .role(ResponseInputItem.Message.Role.USER).addInputTextContent(CALL).build()));
            var params = ResponseCreateParams.builder().model(model).addTool(tool);
            ResponseFunctionToolCall call = service.create(params.inputOfResponse(input).build()).output().stream()
                .flatMap(item -> item.functionCall().stream()).findFirst().orElseThrow();
            input.add(ResponseInputItem.ofFunctionCall(call));
            input.add(ResponseInputItem.ofFunctionCallOutput(ResponseInputItem.FunctionCallOutput.builder()
                .callId(call.callId()).output("sunny").build()));
            equal(text(service.create(params.inputOfResponse(input).build())), RETURNED);
        });
        return tasks;
    }

    static String text(Response response) {
        return response.output().stream().flatMap(item -> item.message().stream()).flatMap(m -> m.content().stream())
            .flatMap(part -> part.outputText().stream()).map(t -> t.text()).collect(Collectors.joining());
    }

    static Map<String, Task> chat(String url, String model) {
        var service = openai(url).chat().completions();
        var hi = ChatCompletionCreateParams.builder().model(model).addUserMessage("hi").build();
        Map<String, Task> tasks = new LinkedHashMap<>();
        tasks.put("text", () -> equal(text(service.create(hi)), SAID));
        tasks.put("stream", () -> {
            var whole = ChatCompletionAccumulator.create();
            try (var stream = service.createStreaming(hi)) {
                stream.stream().forEach(whole::accumulate);
            }
            equal(text(whole.chatCompletion()), SAID);
        });
        tasks.put("tools", () -> {
            var params = ChatCompletionCreateParams.builder().model(model).addUserMessage(CALL)
                .addFunctionTool(FunctionDefinition.builder().name("get_weather")
                    .parameters(FunctionParameters.builder()
                        .putAdditionalProperty("type", JsonValue.from("object"))
                        .putAdditionalProperty("properties", JsonValue.from(Map.of())).build()).build());
            ChatCompletionMessage message = service.create(params.build()).choices().get(0).message();
            String id = message.toolCalls().orElseThrow().get(0).asFunction().id();
            params.addMessage(message)
                .addMessage(ChatCompletionToolMessageParam.builder().toolCallId(id).content("sunny").build());
            equal(text(service.create(params.build())), RETURNED);
        });
        return tasks;
    }

    static String text(ChatCompletion completion) {
        return completion.choices().get(0).message().content().orElse("");
    }

    static Map<String, Task> messages(String url, String model) {
        var service = AnthropicOkHttpClient.builder().apiKey(KEY).baseUrl(url).maxRetries(0).build().messages();
        var hi = MessageCreateParams.builder().model(model).maxTokens(1024).addUserMessage("hi").build();
        Map<String, Task> tasks = new LinkedHashMap<>();
        tasks.put("text", () -> equal(text(service.create(hi)), SAID));
        tasks.put("stream", () -> {
            var whole = MessageAccumulator.create();
            try (var stream = service.createStreaming(hi)) {
                stream.stream().forEach(whole::accumulate);
            }
            equal(text(whole.message()), SAID);
        });
        tasks.put("tools", () -> {
            var params = MessageCreateParams.builder().model(model).maxTokens(1024).addUserMessage(CALL)
                .addTool(Tool.builder().name("get_weather").inputSchema(Tool.InputSchema.builder().build()).build());
            Message message = service.create(params.build());
            String id = message.content().stream().flatMap(block -> block.toolUse().stream()).findFirst().orElseThrow().id();
            params.addMessage(message).addUserMessageOfContentBlockParams(List.of(ContentBlockParam.ofToolResult(
                ToolResultBlockParam.builder().toolUseId(id).content("sunny").build())));
            equal(text(service.create(params.build())), RETURNED);
        });
        return tasks;
    }

    static String text(Message message) {
        return message.content().stream().flatMap(block -> block.text().stream()).map(t -> t.text()).collect(Collectors.joining());
    }

    public static void main(String[] args) throws Exception {
        var json = new ObjectMapper();
        for (JsonNode trial : json.readTree(System.in)) {
            String client = trial.get("client").asText(), model = trial.get("model").asText(), url = trial.get("base_url").asText();
            var tasks = switch (client) {
                case "openai-java responses" -> responses(url, model);
                case "openai-java chat" -> chat(url, model);
                default -> messages(url, model);
            };
            Map<String, String> failures = new LinkedHashMap<>();
            for (var task : tasks.entrySet()) {
                try {
                    task.getValue().run();
                } catch (Throwable e) {
                    failures.put(task.getKey(), e.toString());
                }
            }
            System.out.println(json.writeValueAsString(Map.of("client", client, "model", model, "failures", failures)));
        }
        System.exit(0); // the clients' threads would wait for a minute
    }
}
