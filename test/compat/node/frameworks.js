// Calls of the frameworks that speak Responses: Vercel's AI SDK, and OpenAI's
// Agents SDK. Each is called a second time with what came of the first call, and
// the result of a tool.
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, OpenAIResponsesModel, Runner, tool as agentTool, user } from '@openai/agents'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { serve } from './serve.js'

globalThis.AI_SDK_LOG_WARNINGS = false // they go to stdout, which has the answers

await serve({
  async ai(call) {
    const openai = createOpenAI({ baseURL: call.base_url, apiKey: 'none', headers: call.headers })
    let raised
    const request = {
      model: openai.responses(call.request.model),
      prompt: call.request.input,
      tools: Object.fromEntries(
        (call.request.tools ?? []).map((t) => [t.name, tool({ inputSchema: jsonSchema(t.parameters), execute: () => 'done' })]),
      ),
      stopWhen: stepCountIs(2),
      maxRetries: 0,
      onError: ({ error }) => (raised ??= error),
    }
    const result = call.stream ? streamText(request) : await generateText(request)
    if (call.stream) await result.consumeStream()
    if (raised) throw raised

    const { inputTokens, outputTokens } = await result.usage
    return {
      text: await result.text,
      tool_calls: (await result.toolCalls)
        .filter((c) => !c.providerExecuted)
        .map((c) => ({ name: c.toolName, arguments: c.input })),
      usage: { input_tokens: inputTokens, output_tokens: outputTokens },
    }
  },

  // A tool that is called ends a run.
  async agents(call) {
    const client = new OpenAI({
      apiKey: 'none',
      baseURL: call.base_url,
      defaultHeaders: call.headers,
      maxRetries: 0,
    })
    const agent = new Agent({
      name: 'compat',
      model: new OpenAIResponsesModel(client, call.request.model),
      tools: (call.request.tools ?? []).map(({ name, parameters }) =>
        agentTool({ name, description: name, parameters, strict: false, execute: () => 'done' }),
      ),
      toolUseBehavior: 'stop_on_first_tool',
    })
    const runner = new Runner({ tracingDisabled: true })
    const ask = async (input) => {
      const result = await runner.run(agent, input, { stream: call.stream, maxTurns: 1 })
      if (call.stream) {
        for await (const _ of result);
        await result.completed
      }
      return result
    }
    const { history } = await ask(call.request.input)
    const result = await ask([...history, user('Go on.')])

    const [{ output, usage }] = result.rawResponses
    return {
      text: output
        .filter((i) => i.type === 'message')
        .flatMap((i) => i.content.map((part) => part.text ?? ''))
        .join(''),
      tool_calls: output
        .filter((i) => i.type === 'function_call')
        .map((i) => ({ name: i.name, arguments: i.arguments })),
      usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
    }
  },
})
