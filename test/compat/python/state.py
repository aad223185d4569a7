"""Goes on from a stored response with the official client, and prints what it saw as
JSON."""

import json
import sys

import openai

base_url, model = sys.argv[1:]
client = openai.OpenAI(api_key="weir-quickstart", base_url=base_url, max_retries=0).responses

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
print(json.dumps(seen))
