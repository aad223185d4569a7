// Makes calls with one library that reports over OpenTelemetry, as its users set it up:
// node telemetry.js SETUP. The provider is at PROVIDER_URL, and the exporter's variables name Weir.
import Anthropic from '@anthropic-ai/sdk'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { AnthropicInstrumentation as OpenInferenceAnthropic } from '@arizeai/openinference-instrumentation-anthropic'
import { OpenAIInstrumentation as OpenInferenceOpenAI } from '@arizeai/openinference-instrumentation-openai'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { OpenAIInstrumentation } from '@traceloop/instrumentation-openai'
import { embed, generateText, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { z } from 'zod'

const provider = process.env.PROVIDER_URL
const models = { openai: 'gpt-5-mini', anthropic: 'claude-sonnet-4-5', embedding: 'text-embedding-3-small' }
const ask = [{ role: 'user', content: 'What is this?' }]
const wrong = [{ role: 'user', content: 'Please fail.' }]
const weather = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

// refused makes a call that the provider refuses.
const refused = (call) => call().then(() => { throw new Error('the call was not refused') }, () => {})

async function openai() {
  const client = new OpenAI({ baseURL: provider + '/v1', apiKey: 'none', maxRetries: 0 })
  const chat = (more) => client.chat.completions.create({ model: models.openai, messages: ask, ...more })
  await chat({})
  for await (const _ of await chat({ stream: true, stream_options: { include_usage: true } }));
  await chat({ tools: [{ type: 'function', function: { name: 'get_weather', parameters: weather } }] })
  await refused(() => chat({ messages: wrong }))
  await client.responses.create({ model: models.openai, input: 'What is this?' })
  await client.embeddings.create({ model: models.embedding, input: 'a' })
}

async function anthropic() {
  const client = new Anthropic({ baseURL: provider, apiKey: 'none', maxRetries: 0 })
  const message = (more) => client.messages.create({ model: models.anthropic, max_tokens: 500, messages: ask, ...more })
  await message({})
  for await (const _ of await message({ stream: true }));
  await message({ tools: [{ name: 'get_weather', input_schema: weather }] })
  await refused(() => message({ messages: wrong }))
}

async function ai() {
  const vendor = createOpenAI({ baseURL: provider + '/v1', apiKey: 'none' })
  const tools = { get_weather: tool({ description: 'The weather.', inputSchema: z.object({ city: z.string() }), execute: async () => 'sunny' }) }
  for (const model of [vendor(models.openai), vendor.chat(models.openai), createAnthropic({ baseURL: provider + '/v1', apiKey: 'none' })(models.anthropic)]) {
    const call = { model, maxRetries: 0, experimental_telemetry: { isEnabled: true } }
    await generateText({ ...call, prompt: 'What is this?' })
    await streamText({ ...call, prompt: 'What is this?' }).text
    await generateText({ ...call, prompt: 'What is the weather?', tools, stopWhen: stepCountIs(3) })
    await refused(() => generateText({ ...call, prompt: 'Please fail.' }))
  }
  await embed({ model: vendor.embedding(models.embedding), value: 'a', experimental_telemetry: { isEnabled: true } })
}

// instrumented is a set-up by an instrumentation of a client.
const instrumented = (Instrumentation, client, calls) => async (tracerProvider) => {
  const instrumentation = new Instrumentation()
  instrumentation.setTracerProvider(tracerProvider)
  instrumentation.manuallyInstrument(client)
  await calls()
}

const setups = {
  ai,
  'openinference/openai': instrumented(OpenInferenceOpenAI, OpenAI, openai),
  'openinference/anthropic': instrumented(OpenInferenceAnthropic, Anthropic, anthropic),
  'openllmetry/openai': instrumented(OpenAIInstrumentation, OpenAI, openai),
}

const tracerProvider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
tracerProvider.register()
await setups[process.argv[2]](tracerProvider)
await tracerProvider.shutdown()
