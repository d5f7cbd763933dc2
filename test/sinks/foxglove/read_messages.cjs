// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// Subscribes to every channel by Foxglove's own client library; prints what it gets as JSON lines.
// Usage: node read_messages.cjs PORT MESSAGES
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const { WebSocket } = require("ws");

// The SDK knows the protocol by its later name only; viewers that use this library ask for both.
const SUBPROTOCOLS = [FoxgloveClient.SUPPORTED_SUBPROTOCOL, "foxglove.sdk.v1"];

const [port, wanted] = process.argv.slice(2).map(Number);
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const client = new FoxgloveClient({
  ws: new WebSocket(`ws://127.0.0.1:${port}`, SUBPROTOCOLS),
});
const topics = new Map();
let messages = 0;

client.on("error", (error) => print({ error: String(error) }));
client.on("advertise", (channels) => {
  for (const { id, topic } of channels) topics.set(client.subscribe(id), topic);
});
client.on("message", ({ subscriptionId, timestamp, data }) => {
  const payload = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
  print({ topic: topics.get(subscriptionId), time: String(timestamp), payload });
  messages += 1;
  if (messages === wanted) {
    client.close();
  }
});
