// A session with `ptxemu debug --dap` by VS Code's own test client: node debug_adapter.js PYTHON ADAPTER PROGRAM SOURCE
const assert = require("node:assert");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

async function main([python, adapter, program, source]) {
  const client = new DebugClient(python, adapter, "ptxemu", undefined, true);
  client.defaultTimeout = 60000;
  await client.start();
  const launch = { program, grid: 1, block: 64, arg: ["out=zeros:u32:64"] };
  await client.hitBreakpoint(launch, { path: source, line: 3, verified: false }, { path: source, line: 3 }, {});
  const threadId = 1;
  const threads = (await client.threadsRequest()).body.threads;
  assert.deepStrictEqual(threads.map((thread) => thread.id), [1, 2]);
  const [frame] = (await client.stackTraceRequest({ threadId })).body.stackFrames;
  const [registers] = (await client.scopesRequest({ frameId: frame.id })).body.scopes;
  const { variables } = (await client.variablesRequest({ variablesReference: registers.variablesReference })).body;
  assert.ok(variables.some((one) => one.name === "%r1" && one.value === "0 (0x0)"));
  const moves = [["nextRequest", "step", 4], ["stepBackRequest", "step", 3], ["reverseContinueRequest", "step", undefined]];
  for (const [request, reason, line] of moves) {
    await Promise.all([client[request]({ threadId }), client.assertStoppedLocation(reason, { line })]);
  }
  await client.setBreakpointsRequest({ source: { path: source }, breakpoints: [] });
  await Promise.all([client.continueRequest({ threadId }), client.waitForEvent("terminated")]);
  const sum = await client.evaluateRequest({ expression: "out.sum()" });
  assert.strictEqual(sum.body.result, String((63 * 64) / 2));
  await client.stop();
  console.log("debug adapter: a session with VS Code's test client");
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
