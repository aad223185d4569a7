// Reports the calls of OpenAI's client to Weir. The program imports this before
// it makes a client.
import { OpenAIInstrumentation } from "@arizeai/openinference-instrumentation-openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import OpenAI from "openai";

const weir = process.env.WEIR_BASE_URL ?? "http://localhost:8080";
const key = process.env.WEIR_API_KEY ?? "weir-quickstart";

export const provider = new NodeTracerProvider({
  spanProcessors: [
    new BatchSpanProcessor(
      new OTLPTraceExporter({ url: `${weir}/v1/traces`, headers: { Authorization: `Bearer ${key}` } }),
    ),
  ],
  // A conversation has more attributes than the default of 128 lets through.
  spanLimits: { attributeCountLimit: 10_000 },
});
provider.register();
new OpenAIInstrumentation({ tracerProvider: provider }).manuallyInstrument(OpenAI);
