// Has batches of Messages made with the official client, stable and beta. It prints what it saw as JSON.
import Anthropic from '@anthropic-ai/sdk'

const [baseURL, received, ...models] = process.argv.slice(2)
const client = new Anthropic({ apiKey: 'weir-quickstart', baseURL, maxRetries: 0 })
const call = (id, model) => ({ custom_id: id, params: { model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] } })
const raises = (kind, promise) => promise.then(() => 'nothing', (e) => (e instanceof kind && e.error.type === 'error' ? e.error.error.type : String(e)))

const seen = {}
for (const [name, batches] of Object.entries({ messages: client.messages.batches, beta: client.beta.messages.batches })) {
  const batch = await batches.create({ requests: [call('a', models[0]), call('b', models[1])] })
  const ended = await batches.retrieve(batch.id)
  const results = {}
  for await (const r of await batches.results(batch.id)) {
    results[r.custom_id] = r.result.type === 'succeeded' ? r.result.message.content[0].text : r.result.type
  }
  const calls = (await (await fetch(received)).json()).requests
  seen[name] = {
    batch: batch.processing_status,
    ended: ended.processing_status,
    listed: (await batches.list({ limit: 1 })).data.map((b) => b.id === batch.id),
    models: [...new Set(calls.map((c) => c.params.model))].sort(),
    results,
    cancelled: (await batches.cancel(batch.id)).processing_status,
    deleted: (await batches.delete(batch.id)).type,
    missing: await raises(Anthropic.NotFoundError, batches.retrieve(batch.id)),
    mixed: await raises(Anthropic.BadRequestError, batches.create({ requests: [call('a', models[0]), call('b', 'echo/echo-1')] })),
  }
}
console.log(JSON.stringify(seen))
