// Goes on from a stored response with the official client, and prints what it saw as JSON.
import OpenAI from 'openai'

const [baseURL, model] = process.argv.slice(2)
const { responses, conversations } = new OpenAI({ apiKey: 'weir-quickstart', baseURL, maxRetries: 0 })

const first = await responses.create({ model, input: 'first' })
const second = await responses.create({ model, input: 'second', previous_response_id: first.id })
const kept = await responses.retrieve(first.id)
const seen = {
  kept: kept.output_text === first.output_text && kept.output_text !== '',
  previous: second.previous_response_id === first.id,
  input: [],
}
for await (const item of responses.inputItems.list(second.id)) seen.input.push(item.content[0].text)
await responses.delete(first.id)
await responses.retrieve(first.id).catch((e) => {
  if (e instanceof OpenAI.NotFoundError) seen.deleted = e.code
})
await responses.create({ model, input: 'third', previous_response_id: second.id }).catch((e) => {
  if (e instanceof OpenAI.BadRequestError) seen.broken = e.code
})

const collect = async (list) => {
  const all = []
  for await (const one of list) all.push(one)
  return all
}
const conversation = await conversations.create({ items: [{ role: 'user', content: 'zeroth' }], metadata: { a: 'b' } })
await responses.create({ model, input: 'fourth', conversation: conversation.id })
const items = await collect(conversations.items.list(conversation.id, { order: 'asc' }))
seen.conversation = items.filter((i) => i.role === 'user').map((i) => i.content[0].text)
await conversations.items.create(conversation.id, { items: [{ role: 'user', content: 'fifth' }] })
await conversations.items.retrieve(items[0].id, { conversation_id: conversation.id })
await conversations.items.delete(items[0].id, { conversation_id: conversation.id })
seen.metadata = (await conversations.update(conversation.id, { metadata: { c: 'd' } })).metadata
seen.conversationDeleted = (await conversations.delete(conversation.id)).deleted

let background = await responses.create({ model, input: 'sixth', background: true })
seen.background = background.background
while (['queued', 'in_progress'].includes(background.status)) background = await responses.retrieve(background.id)
seen.status = background.status
const resumed = await collect(await responses.retrieve(background.id, { stream: true, starting_after: 0 }))
seen.resumed = [resumed[0].sequence_number, resumed.at(-1).type]
seen.cancelled = (await responses.cancel(background.id)).status
const streamed = await collect(await responses.create({ model, input: 'seventh', background: true, stream: true }))
seen.streamed = [streamed[0].type, streamed.at(-1).type]

const compaction = await responses.compact({ model, input: [{ role: 'user', content: 'eighth' }] })
const goneOn = await responses.create({ model, input: [...compaction.output, { role: 'user', content: 'ninth' }] })
seen.compaction = [...compaction.output.map((item) => item.type), goneOn.status]
seen.counted = (await responses.inputTokens.count({ model: 'echo/echo-1', input: 'tenth' })).input_tokens > 0
console.log(JSON.stringify(seen))
