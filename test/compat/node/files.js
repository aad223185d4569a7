// Keeps files and batches, and speaks Realtime, with the official client. It prints what
// it saw as JSON.
import net from 'node:net'
import OpenAI, { toFile } from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'

const [baseURL] = process.argv.slice(2)
const client = new OpenAI({ apiKey: 'weir-quickstart', baseURL, maxRetries: 0 })
const { files, batches } = client

const file = await files.create({ file: await toFile(Buffer.from('{"custom_id":"a"}\n'), 'calls.jsonl'), purpose: 'batch' })
const listed = await files.list()
const seen = {
  uploaded: (await files.retrieve(file.id)).bytes,
  listed: listed.data.some((f) => f.id === file.id),
  content: (await (await files.content(file.id)).text()).trim(),
}
const batch = await batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
seen.batch = batch.status
seen.batches = (await batches.list()).data.some((b) => b.id === batch.id)
const ended = await batches.retrieve(batch.id)
seen.ended = ended.status
seen.cancelled = (await batches.cancel(batch.id)).status
const results = await (await files.content(ended.output_file_id)).text()
seen.results = JSON.parse(results.split('\n')[0]).response.body.choices[0].message.content
seen.deleted = (await files.delete(file.id)).deleted
await files.retrieve(file.id).catch((e) => {
  seen.missing = e instanceof OpenAI.NotFoundError
})

// The library knows wss alone, and this gateway has no TLS.
const createConnection = ({ host, port }) => net.connect({ host, port })
const socket = new OpenAIRealtimeWS({ model: 'openai/gpt-realtime', options: { createConnection } }, client)
await new Promise((resolve, reject) => {
  socket.on('error', reject)
  socket.on('session.created', () => socket.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } }))
  socket.on('session.updated', (event) => {
    seen.updated = event.session.output_modalities[0] === 'text'
    socket.send({ type: 'response.create' })
  })
  socket.on('response.output_text.delta', (event) => {
    seen.spoken = event.delta
  })
  socket.on('response.done', (event) => {
    seen.tokens = event.response.usage.total_tokens
    resolve()
  })
})
socket.close()
console.log(JSON.stringify(seen))
