"""Writes each call of LiteLLM, with its bodies, tokens and cost, as a line of JSON to $DIR."""

import json
import os

from litellm.integrations.custom_logger import CustomLogger

file = open(os.path.join(os.environ["DIR"], "calls.jsonl"), "a", buffering=1)


class Record(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        file.write(json.dumps(kwargs["standard_logging_object"], default=str) + "\n")

    async_log_failure_event = async_log_success_event


record = Record()
