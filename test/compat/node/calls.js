// Calls of the official clients.
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { serve } from './serve.js'

const options = (call) => ({
  apiKey: 'none',
  baseURL: call.base_url,
  defaultHeaders: call.headers,
  maxRetries: 0,
})

const calls = {
  async 'chat.completions'(call) {
    const { completions } = new OpenAI(options(call)).chat
    if (call.helper) return chatAnswer(await completions.stream(call.request).finalChatCompletion())
    const answer = await completions.create(call.request)
    if (!call.request.stream) return chatAnswer(answer)

    const seen = { text: '', tool_calls: [], usage: null }
    for await (const chunk of answer) {
      seen.usage = chunk.usage ?? seen.usage
      const delta = chunk.choices[0]?.delta
      seen.text += delta?.content ?? ''
      for (const { index, function: f } of delta?.tool_calls ?? []) {
        const tool = (seen.tool_calls[index] ??= { name: '', arguments: '' })
        tool.name += f.name ?? ''
        tool.arguments += f.arguments ?? ''
      }
    }
    return seen
  },

  async responses(call) {
    const { responses } = new OpenAI(options(call))
    if (call.helper) return responsesAnswer(await responses.stream(call.request).finalResponse())
    const answer = await responses.create(call.request)
    if (!call.request.stream) return responsesAnswer(answer)

    const seen = { text: '', tool_calls: [], usage: null }
    for await (const event of answer) {
      if (event.type === 'response.output_text.delta') seen.text += event.delta
      if (event.type === 'response.output_item.done') seen.tool_calls.push(...functionCalls([event.item]))
      if (event.type === 'response.completed' || event.type === 'response.incomplete') seen.usage = event.response.usage
    }
    return seen
  },

  async messages(call) {
    const client = new Anthropic(options(call))
    const { messages } = call.beta ? client.beta : client
    if (call.helper) return messagesAnswer(await messages.stream(call.request).finalMessage())
    const answer = await messages.create(call.request)
    if (!call.request.stream) return messagesAnswer(answer)

    const blocks = []
    let usage = null
    for await (const event of answer) {
      if (event.type === 'message_start') usage = event.message.usage
      if (event.type === 'message_delta') usage = merge(usage, event.usage)
      if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' }
      if (event.type !== 'content_block_delta') continue
      const { delta } = event
      if (delta.type === 'text_delta') blocks[event.index].text += delta.text
      if (delta.type === 'input_json_delta') blocks[event.index].json += delta.partial_json
    }
    for (const block of blocks) if (block.json) block.input = JSON.parse(block.json)
    return messagesAnswer({ content: blocks, usage })
  },

  async generateContent(call) {
    const client = new GoogleGenAI({
      apiKey: 'none',
      httpOptions: { baseUrl: call.base_url, apiVersion: 'v1beta', headers: call.headers },
    })
    const { contents, generationConfig, ...rest } = call.request
    const request = { model: call.model, contents, config: { ...generationConfig, ...rest } }
    const chunks = call.stream
      ? await client.models.generateContentStream(request)
      : [await client.models.generateContent(request)]

    const seen = { text: '', tool_calls: [], usage: null }
    for await (const chunk of chunks) {
      seen.text += chunk.text ?? ''
      seen.tool_calls.push(...(chunk.functionCalls ?? []).map((f) => ({ name: f.name, arguments: f.args })))
      seen.usage = chunk.usageMetadata ?? seen.usage
    }
    return seen
  },
}

const chatAnswer = ({ choices: [{ message }], usage }) => ({
  text: message.content ?? '',
  tool_calls: (message.tool_calls ?? []).map((t) => ({ name: t.function.name, arguments: t.function.arguments })),
  usage,
})

// Not output_text: the client leaves that to a provider which sends it empty.
const responsesAnswer = ({ output, usage }) => ({
  text: output
    .filter((i) => i.type === 'message')
    .flatMap((i) => i.content.map((part) => part.text ?? ''))
    .join(''),
  tool_calls: functionCalls(output),
  usage,
})

const functionCalls = (items) =>
  items.filter((i) => i.type === 'function_call').map((i) => ({ name: i.name, arguments: i.arguments }))

const messagesAnswer = ({ content, usage }) => ({
  text: content.map((b) => (b.type === 'text' ? b.text : '')).join(''),
  tool_calls: content.filter((b) => b.type === 'tool_use').map((b) => ({ name: b.name, arguments: b.input })),
  usage,
})

// A message_delta repeats of the usage what is known by then; null says nothing.
const merge = (usage, later) => ({
  ...usage,
  ...Object.fromEntries(Object.entries(later).filter(([, count]) => count !== null)),
})

await serve(calls)
