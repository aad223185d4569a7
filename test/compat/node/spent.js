// Calls each client once with as many retries as it makes by itself, and prints the status
// that each raises as a line of JSON. Its argument is the address, below which each client
// has a path.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { generateText } from 'ai'
import OpenAI from 'openai'

globalThis.AI_SDK_LOG_WARNINGS = false // they go to stdout, which has the answers

const apiKey = 'spent'
const messages = [{ role: 'user', content: 'hi' }]
const openai = (baseURL) => new OpenAI({ apiKey, baseURL: baseURL + '/v1' })

const clients = {
  'openai-node-responses': (url) => openai(url).responses.create({ model: 'echo/echo-1', input: 'hi' }),
  'openai-node-chat': (url) => openai(url).chat.completions.create({ model: 'echo/echo-1', messages }),
  'anthropic-node': (baseURL) => new Anthropic({ apiKey, baseURL }).messages.create({ model: 'echo/echo-1', max_tokens: 100, messages }),
  'ai-sdk-openai': (url) => generateText({ model: createOpenAI({ apiKey, baseURL: url + '/v1' })('echo/echo-1'), prompt: 'hi' }),
  'ai-sdk-anthropic': (url) => generateText({ model: createAnthropic({ apiKey, baseURL: url + '/v1' })('echo/echo-1'), prompt: 'hi' }),
}

for (const [client, call] of Object.entries(clients)) {
  let status = 200
  try {
    await call(`${process.argv[2]}/${client}`)
  } catch (error) {
    status = error.status ?? error.statusCode ?? 0
  }
  process.stdout.write(JSON.stringify({ client, status }) + '\n')
}
