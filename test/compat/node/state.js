// Goes on from a stored response with the official client, and prints what it saw as JSON.
import OpenAI from 'openai'

const [baseURL, model] = process.argv.slice(2)
const { responses } = new OpenAI({ apiKey: 'weir-quickstart', baseURL, maxRetries: 0 })

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
console.log(JSON.stringify(seen))
