"""Goes on from a stored response with the official client, and prints what it saw as
JSON."""

import json
import sys

import openai

base_url, model = sys.argv[1:]
whole = openai.OpenAI(api_key="weir-quickstart", base_url=base_url, max_retries=0)
client = whole.responses

first = client.create(model=model, input="first")
second = client.create(model=model, input="second", previous_response_id=first.id)
seen = {
    "kept": client.retrieve(first.id).output_text == first.output_text != "",
    "previous": second.previous_response_id == first.id,
    "input": [item.content[0].text for item in client.input_items.list(second.id)],
}
client.delete(first.id)
try:
    client.retrieve(first.id)
except openai.NotFoundError as e:
    seen["deleted"] = e.code
try:
    client.create(model=model, input="third", previous_response_id=second.id)
except openai.BadRequestError as e:
    seen["broken"] = e.code

conversation = whole.conversations.create(items=[{"role": "user", "content": "zeroth"}], metadata={"a": "b"})
client.create(model=model, input="fourth", conversation=conversation.id)
items = list(whole.conversations.items.list(conversation.id, order="asc"))
seen["conversation"] = [item.content[0].text for item in items if item.role == "user"]
whole.conversations.items.create(conversation.id, items=[{"role": "user", "content": "fifth"}])
whole.conversations.items.retrieve(items[0].id, conversation_id=conversation.id)
whole.conversations.items.delete(items[0].id, conversation_id=conversation.id)
seen["metadata"] = whole.conversations.update(conversation.id, metadata={"c": "d"}).metadata
seen["conversationDeleted"] = whole.conversations.delete(conversation.id).deleted

background = client.create(model=model, input="sixth", background=True)
seen["background"] = background.background
while background.status in ("queued", "in_progress"):
    background = client.retrieve(background.id)
seen["status"] = background.status
resumed = list(client.retrieve(background.id, stream=True, starting_after=0))
seen["resumed"] = [resumed[0].sequence_number, resumed[-1].type]
seen["cancelled"] = client.cancel(background.id).status
streamed = list(client.create(model=model, input="seventh", background=True, stream=True))
seen["streamed"] = [streamed[0].type, streamed[-1].type]

compaction = client.compact(model=model, input=[{"role": "user", "content": "eighth"}])
gone_on = client.create(model=model, input=[*(item.to_dict(warnings=False) for item in compaction.output), {"role": "user", "content": "ninth"}])
seen["compaction"] = [item.type for item in compaction.output] + [gone_on.status]
seen["counted"] = client.input_tokens.count(model="echo/echo-1", input="tenth").input_tokens > 0
print(json.dumps(seen))
