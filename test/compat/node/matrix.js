// Tries each of the clients that it reads as a JSON array on stdin with its model, and
// prints what went wrong with each as a line of JSON. The models are echoes.
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { Agent, MemorySession, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, tool as agentTool } from '@openai/agents'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { text as read } from 'node:stream/consumers'
import { z } from 'zod'

globalThis.AI_SDK_LOG_WARNINGS = false // they go to stdout, which has the answers

const schema = {
  type: 'object',
  properties: { location: { type: 'string' } },
  required: ['location'],
  additionalProperties: false,
}
const weather = { name: 'get_weather', description: 'The weather of a place.' }
const Answer = z.object({ ok: z.boolean(), s: z.string() })
const answerSchema = {
  type: 'object',
  properties: { ok: { type: 'boolean' }, s: { type: 'string' } },
  required: ['ok', 's'],
  additionalProperties: false,
}

const call = 'What is the weather? get_weather()'
const said = 'You said: hi'
const returned = 'The tool returned: sunny'

const equal = (got, want) => {
  if (got !== want) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
const isAnswer = (got) => equal(JSON.stringify(Answer.parse(got)), '{"ok":true,"s":"text"}')

const openai = ({ base_url }) => new OpenAI({ apiKey: 'weir-quickstart', baseURL: base_url + '/v1', maxRetries: 0 })

// Each client has the same four tasks: text, a stream, a call of a function and an
// answer by a schema.
const clients = {
  'openai-node responses': (c) => {
    const { model } = c
    const { responses } = openai(c)
    return {
      text: async () => equal((await responses.create({ model, input: 'hi' })).output_text, said),
      stream: async () => equal((await responses.stream({ model, input: 'hi' }).finalResponse()).output_text, said),
      tools: async () => {
        const tools = [{ type: 'function', ...weather, parameters: schema, strict: true }]
        const input = [{ role: 'user', content: call }]
        const { output } = await responses.create({ model, input, tools })
        const { call_id } = output.find((i) => i.type === 'function_call')
        input.push(...output, { type: 'function_call_output', call_id, output: 'sunny' })
        equal((await responses.create({ model, input, tools })).output_text, returned)
      },
      schema: async () =>
        isAnswer((await responses.parse({ model, input: 'hi', text: { format: zodTextFormat(Answer, 'answer') } })).output_parsed),
    }
  },

  // The conversation is what the gateway keeps: each call has only what is new.
  'openai-node conversations': (c) => {
    const { model } = c
    const { conversations, responses } = openai(c)
    const after = async (input) => {
      const conversation = (await conversations.create()).id
      equal((await responses.create({ model, conversation, input: 'first' })).output_text, 'You said: first')
      return { model, conversation, input }
    }
    return {
      text: async () => {
        const request = await after('hi')
        equal((await responses.create(request)).output_text, said)
        const roles = []
        for await (const item of conversations.items.list(request.conversation, { order: 'asc' })) roles.push(item.role)
        equal(roles.join(), 'user,assistant,user,assistant')
      },
      stream: async () => equal((await responses.stream(await after('hi')).finalResponse()).output_text, said),
      tools: async () => {
        const tools = [{ type: 'function', ...weather, parameters: schema, strict: true }]
        const request = await after(call)
        const { output } = await responses.create({ ...request, tools })
        const { call_id } = output.find((i) => i.type === 'function_call')
        const input = [{ type: 'function_call_output', call_id, output: 'sunny' }]
        equal((await responses.create({ ...request, input, tools })).output_text, returned)
      },
      schema: async () =>
        isAnswer((await responses.parse({ ...(await after('hi')), text: { format: zodTextFormat(Answer, 'answer') } })).output_parsed),
    }
  },

  'openai-node chat': (c) => {
    const { model } = c
    const { completions } = openai(c).chat
    const messages = [{ role: 'user', content: 'hi' }]
    const content = (completion) => completion.choices[0].message.content
    return {
      text: async () => equal(content(await completions.create({ model, messages })), said),
      stream: async () => equal(content(await completions.stream({ model, messages }).finalChatCompletion()), said),
      tools: async () => {
        const runner = completions.runTools({
          model,
          messages: [{ role: 'user', content: call }],
          tools: [{ type: 'function', function: { ...weather, parameters: schema, function: () => 'sunny', parse: JSON.parse } }],
        })
        equal(await runner.finalContent(), returned)
      },
      schema: async () => {
        const answer = await completions.parse({ model, messages, response_format: zodResponseFormat(Answer, 'answer') })
        isAnswer(answer.choices[0].message.parsed)
      },
    }
  },

  'anthropic-node': ({ base_url, model }) => {
    const { messages } = new Anthropic({ apiKey: 'weir-quickstart', baseURL: base_url, maxRetries: 0 })
    const ask = (content, more) => ({ model, max_tokens: 1000, messages: [{ role: 'user', content }], ...more })
    const textOf = ({ content }) => content.map((b) => b.text ?? '').join('')
    return {
      text: async () => equal(textOf(await messages.create(ask('hi'))), said),
      stream: async () => equal(textOf(await messages.stream(ask('hi')).finalMessage()), said),
      tools: async () => {
        const request = ask(call, { tools: [{ ...weather, input_schema: schema }] })
        const { content } = await messages.create(request)
        const { id } = content.find((b) => b.type === 'tool_use')
        const result = { type: 'tool_result', tool_use_id: id, content: 'sunny' }
        request.messages.push({ role: 'assistant', content }, { role: 'user', content: [result] })
        equal(textOf(await messages.create(request)), returned)
      },
      schema: async () => {
        const output_config = { format: { type: 'json_schema', schema: answerSchema } }
        isAnswer(JSON.parse(textOf(await messages.create(ask('hi', { output_config })))))
      },
    }
  },

  'ai-sdk': (c) => aiSDK(c, (provider) => provider(c.model)),
  'ai-sdk chat': (c) => aiSDK(c, (provider) => provider.chat(c.model)),

  'agents-js': (c) => agents(new OpenAIResponsesModel(openai(c), c.model)),
  'agents-js chat': (c) => agents(new OpenAIChatCompletionsModel(openai(c), c.model)),
}

function aiSDK({ base_url }, modelOf) {
  const model = modelOf(createOpenAI({ baseURL: base_url + '/v1', apiKey: 'weir-quickstart' }))
  return {
    text: async () => equal((await generateText({ model, prompt: 'hi', maxRetries: 0 })).text, said),
    stream: async () => {
      let raised
      const result = streamText({ model, prompt: 'hi', maxRetries: 0, onError: ({ error }) => (raised ??= error) })
      await result.consumeStream()
      if (raised) throw raised
      equal(await result.text, said)
    },
    tools: async () => {
      const get_weather = tool({ inputSchema: jsonSchema(schema), execute: () => 'sunny' })
      const result = await generateText({ model, prompt: call, tools: { get_weather }, stopWhen: stepCountIs(3), maxRetries: 0 })
      equal(result.text, returned)
    },
    schema: async () =>
      isAnswer((await generateText({ model, prompt: 'hi', output: Output.object({ schema: Answer }), maxRetries: 0 })).output),
  }
}

function agents(model) {
  const runner = new Runner({ tracingDisabled: true })
  const ask = async (input, options, more) => (await runner.run(new Agent({ name: 'compat', model, ...options }), input, more)).finalOutput
  return {
    text: async () => {
      const session = new MemorySession()
      equal(await ask('first', {}, { session }), 'You said: first')
      equal(await ask('hi', {}, { session }), said)
    },
    stream: async () => {
      const result = await runner.run(new Agent({ name: 'compat', model }), 'hi', { stream: true })
      for await (const _ of result);
      await result.completed
      equal(result.finalOutput, said)
    },
    tools: async () => {
      const get_weather = agentTool({ ...weather, parameters: z.object({ location: z.string() }), execute: () => 'sunny' })
      equal(await ask(call, { tools: [get_weather] }), returned)
    },
    schema: async () => isAnswer(await ask('hi', { outputType: Answer })),
  }
}

for (const c of JSON.parse(await read(process.stdin))) {
  const failures = {}
  for (const [task, run] of Object.entries(clients[c.client](c))) {
    try {
      await run()
    } catch (error) {
      const { message } = error.error?.error ?? error.error ?? error
      failures[task] = String(message).replace(/\s+/g, ' ')
    }
  }
  process.stdout.write(JSON.stringify({ client: c.client, model: c.model, failures }) + '\n')
}
