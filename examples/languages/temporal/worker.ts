// A worker of Temporal, in TypeScript, that works jobs of Daybook. It needs nothing of Daybook: a file names the workflow, the activities and the task queue
// (docs/job-types.md).
import { fileURLToPath } from "node:url";
import { NativeConnection, Worker } from "@temporalio/worker";
import * as activities from "./activities.js";

const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS ?? "localhost:7233" });
const worker = await Worker.create({
  connection,
  namespace: process.env.TEMPORAL_NAMESPACE ?? "default",
  taskQueue: "texts",
  workflowsPath: fileURLToPath(new URL("./workflows.js", import.meta.url)),
  activities,
  defaultHeartbeatThrottleInterval: "200 ms",
  maxHeartbeatThrottleInterval: "200 ms",
});
await worker.run(); // until SIGINT or SIGTERM
await connection.close();
