"""Verifies a message that standard input has, as its receiver does."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

message = json.load(sys.stdin)
webhook = Webhook(message["secret"])
verified = webhook.verify(message["body"], message["headers"])
try:
    webhook.verify(message["body"] + " ", message["headers"])
except WebhookVerificationError:
    print(verified["type"])
