// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// A client of another project: finds the arm among the machines, reads its metering point, follows
// a value, and as a user over an encrypted connection calls the methods. Prints JSON.
//
// node ask_server.js URL USER PASSWORD
"use strict";
const {
  AttributeIds,
  BrowseDirection,
  ClientMonitoredItem,
  ClientSubscription,
  MessageSecurityMode,
  OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
  UserTokenType,
} = require("node-opcua-client");

const [url, userName, password] = process.argv.slice(2);
const MACHINERY = "http://opcfoundation.org/UA/Machinery/";
const OWN = "urn:ur_energy_model:energy";
const options = { endpointMustExist: false, connectionStrategy: { maxRetry: 3 } };

async function children(session, nodeId) {
  const found = await session.browse({
    nodeId,
    referenceTypeId: "HierarchicalReferences",
    includeSubtypes: true,
    browseDirection: BrowseDirection.Forward,
    resultMask: 63,
  });
  return Object.fromEntries(found.references.map((r) => [r.browseName.name, r]));
}

async function readAnonymously() {
  const client = OPCUAClient.create({ ...options });
  const out = {};
  await client.withSessionAsync(url, async (session) => {
    const spaces = await session.readNamespaceArray();
    const own = `ns=${spaces.indexOf(OWN)};s=arm-1`;
    const machines = await children(session, `ns=${spaces.indexOf(MACHINERY)};i=1001`);
    out.machines = Object.keys(machines);
    let at = machines[out.machines[0]];
    for (const step of ["Monitoring", "Consumption", "Electricity", "Main", "DcEnergyTotalSumHp"]) {
      at = (await children(session, at.nodeId))[step];
    }
    out.energy = (await session.read({ nodeId: at.nodeId })).value.value;
    const subscription = ClientSubscription.create(session, {
      requestedPublishingInterval: 20,
      requestedLifetimeCount: 1000,
      requestedMaxKeepAliveCount: 10,
      publishingEnabled: true,
    });
    const item = ClientMonitoredItem.create(
      subscription,
      { nodeId: `${own}/energy/total/energy`, attributeId: AttributeIds.Value },
      { samplingInterval: 10, queueSize: 100, discardOldest: true },
      TimestampsToReturn.Both,
    );
    out.seen = [];
    await new Promise((resolve) => {
      item.on("changed", (data) => {
        out.seen.push(data.value.value);
        if (out.seen.length >= 3) resolve();
      });
    });
    await subscription.terminate();
    const method = { objectId: `${own}/Main`, methodId: `${own}/Main/ResetStatistics` };
    const denied = session.call({ ...method, inputArguments: [] });
    out.denied = await denied.then((result) => result.statusCode.name, (error) => error.message);
  });
  return out;
}

async function callAsUser() {
  const client = OPCUAClient.create({
    ...options,
    securityMode: MessageSecurityMode.SignAndEncrypt,
    securityPolicy: SecurityPolicy.Basic256Sha256,
  });
  await client.connect(url);
  const session = await client.createSession({ type: UserTokenType.UserName, userName, password });
  const own = `ns=${(await session.readNamespaceArray()).indexOf(OWN)};s=arm-1`;
  const call = (name, inputArguments) =>
    session.call({ objectId: own, methodId: `${own}/${name}`, inputArguments });
  const reset = await call("ResetEnergy", [{ dataType: "String", value: "node-opcua" }]);
  const interval = await call("ReadInterval", []);
  await session.close();
  await client.disconnect();
  return {
    reset: reset.statusCode.name,
    interval: interval.outputArguments.map((argument) => argument.value),
  };
}

(async () => {
  const answer = { ...(await readAnonymously()), ...(await callAsUser()) };
  process.stdout.write(JSON.stringify(answer) + "\n");
  process.exit(0);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
