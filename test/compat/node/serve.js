// Makes the calls that it reads as a JSON array on stdin, each with the method
// of its endpoint, and prints what each client saw as a line of JSON.
import { text as read } from 'node:stream/consumers'

export async function serve(methods) {
  for (const call of JSON.parse(await read(process.stdin))) {
    let seen
    try {
      seen = await methods[call.endpoint](call)
    } catch (error) {
      const status = error.status ?? error.statusCode ?? null
      seen = { error: { type: typeName(error), status, message: String(error.message) } }
    }
    process.stdout.write(JSON.stringify({ id: call.id, ...seen }) + '\n')
  }
}

// OpenAI's and Anthropic's errors are named by their class alone, those of the
// AI SDK by themselves.
const typeName = (error) => (error.name === 'Error' ? error.constructor.name : error.name)
