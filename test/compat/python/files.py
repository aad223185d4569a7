"""Keeps files and batches, and speaks Realtime, with the official client. It prints what
it saw as JSON."""

import json
import sys

import openai

[base_url] = sys.argv[1:]
client = openai.OpenAI(api_key="weir-quickstart", base_url=base_url, max_retries=0)
files, batches = client.files, client.batches

file = files.create(file=("calls.jsonl", b'{"custom_id":"a"}\n'), purpose="batch")
seen = {
    "uploaded": files.retrieve(file.id).bytes,
    "listed": file.id in [f.id for f in files.list()],
    "content": files.content(file.id).text.strip(),
}
batch = batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
seen["batch"] = batch.status
seen["batches"] = batch.id in [b.id for b in batches.list()]
ended = batches.retrieve(batch.id)
seen["ended"] = ended.status
seen["cancelled"] = batches.cancel(batch.id).status
results = files.content(ended.output_file_id).text
seen["results"] = json.loads(results.split("\n")[0])["response"]["body"]["choices"][0]["message"]["content"]
seen["deleted"] = files.delete(file.id).deleted
try:
    files.retrieve(file.id)
except openai.NotFoundError:
    seen["missing"] = True

with client.realtime.connect(model="openai/gpt-realtime") as connection:
    for event in connection:
        match event.type:
            case "session.created":
                connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            case "session.updated":
                seen["updated"] = event.session.output_modalities[0] == "text"
                connection.response.create()
            case "response.output_text.delta":
                seen["spoken"] = event.delta
            case "response.done":
                seen["tokens"] = event.response.usage.total_tokens
                break
print(json.dumps(seen, separators=(",", ":")))
