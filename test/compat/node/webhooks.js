// Verifies a message that standard input has, as its receiver does.
import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const message = JSON.parse(readFileSync(0, "utf8"));
const webhook = new Webhook(message.secret);
const verified = webhook.verify(message.body, message.headers);
try {
  webhook.verify(message.body + " ", message.headers);
} catch (error) {
  if (!(error instanceof WebhookVerificationError)) throw error;
  console.log(verified.type);
}
