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
const IA = "http://opcfoundation.org/UA/IA/";
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
    const machines = await children(session, `ns=${spaces.indexOf(MACHINERY)};i=1001`);
    out.machines = Object.keys(machines);
    let at = machines[out.machines[0]];
    for (const step of ["Monitoring", "Consumption", "Electricity", "Main"]) {
      at = (await children(session, at.nodeId))[step];
    }
    out.type = at.typeDefinition.value;
    const values = await children(session, at.nodeId);
    const energy = values.DcEnergyTotalSumHp;
    out.energy = (await session.read({ nodeId: energy.nodeId })).value.value;
    for (const [name, child] of Object.entries(await children(session, energy.nodeId))) {
      const found = (await session.read({ nodeId: child.nodeId })).value.value;
      if (name === "EngineeringUnits") out.unit = found.unitId;
      if (name === "MeasurementID" || name === "AccuracyClass") out[name] = found;
    }
    const subscription = ClientSubscription.create(session, {
      requestedPublishingInterval: 20,
      requestedLifetimeCount: 1000,
      requestedMaxKeepAliveCount: 10,
      publishingEnabled: true,
    });
    const node = { nodeId: `ns=${spaces.indexOf(OWN)};s=arm-1/energy/total/energy` };
    const item = ClientMonitoredItem.create(
      subscription,
      { ...node, attributeId: AttributeIds.Value },
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
    const denied = await session.call({
      objectId: at.nodeId,
      methodId: `ns=${spaces.indexOf(OWN)};s=arm-1/Main/ResetStatistics`,
      inputArguments: [],
    }).then((result) => result.statusCode.name, (error) => error.message);
    out.denied = denied;
  });
  return out;
}

async function callAsUser() {
  const client = OPCUAClient.create({
    ...options,
    securityMode: MessageSecurityMode.SignAndEncrypt,
    securityPolicy: SecurityPolicy.Basic256Sha256,
  });
  const out = {};
  await client.connect(url);
  const session = await client.createSession({ type: UserTokenType.UserName, userName, password });
  const spaces = await session.readNamespaceArray();
  const own = `ns=${spaces.indexOf(OWN)};s=arm-1`;
  const reset = await session.call({
    objectId: own,
    methodId: `${own}/ResetEnergy`,
    inputArguments: [{ dataType: "String", value: "node-opcua" }],
  });
  out.reset = reset.statusCode.name;
  const interval = await session.call({
    objectId: own,
    methodId: `${own}/ReadInterval`,
    inputArguments: [],
  });
  out.interval = interval.outputArguments.map((argument) => argument.value);
  out.resetStatistics = Object.keys(await children(session, `${own}/Main`)).includes(
    "ResetStatistics",
  );
  out.hasStatistics = spaces.includes(IA);
  await session.close();
  await client.disconnect();
  return out;
}

(async () => {
  const answer = { ...(await readAnonymously()), ...(await callAsUser()) };
  process.stdout.write(JSON.stringify(answer) + "\n");
  process.exit(0);
})().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
