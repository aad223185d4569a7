import { setSession, setUser } from "@arizeai/openinference-core";
import { context } from "@opentelemetry/api";
import OpenAI from "openai";

import { provider } from "./tracing.js";

const client = new OpenAI();
const caller = setSession(setUser(context.active(), { userId: "ada" }), { sessionId: "s-17" });

// No stream: this instrumentation does not read the usage of those.
const answer = await context.with(caller, () =>
  client.chat.completions.create({
    model: "gpt-4o",
    messages: [{ role: "user", content: "What does this cost?" }],
  }),
);
console.log(answer.choices[0].message.content);

await provider.shutdown(); // sends what waits
