// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// Decodes Sparkplug payloads by the library of Eclipse Tahu: hexadecimal lines from stdin become
// lines of JSON; the last line is the payload of a command for a rebirth.
//
// node read_payloads.cjs < LINES
"use strict";
const { readFileSync } = require("fs");
const payloads = require("sparkplug-payload").get("spBv1.0");

const plain = (_key, value) =>
  value !== null && typeof value === "object" && "low" in value && "high" in value
    ? value.toNumber()
    : value;

for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const payload = payloads.decodePayload(Buffer.from(line, "hex"));
  process.stdout.write(JSON.stringify(payload, plain) + "\n");
}
const rebirth = { name: "Node Control/Rebirth", type: "Boolean", value: true };
const command = payloads.encodePayload({ timestamp: Date.now(), metrics: [rebirth] });
process.stdout.write(Buffer.from(command).toString("hex") + "\n");
