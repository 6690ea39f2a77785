import { ApplicationFailure, proxyActivities, workflowInfo } from "@temporalio/workflow";
import type * as activities from "./activities.js";

const { countWords: count } = proxyActivities<typeof activities>({ startToCloseTimeout: "1 minute" });

/** What Daybook says of the job besides its payload. */
interface DaybookJob {
  jobId: string;
  type: string;
  orgId: string;
  idempotencyKey: string;
}

/** The payload of the jobs. */
export interface Texts {
  texts: string[];
}

/** Works a job of the type count_texts: its argument is the job's payload, its result the job's. */
export async function countTexts({ texts }: Texts): Promise<{ words: number; organization: string }> {
  if (texts.length === 0) {
    // The error's type is the job's error code; it is not tried again.
    throw ApplicationFailure.nonRetryable("there is no text", "NO_TEXT");
  }
  const counted = await Promise.all(texts.map((text) => count({ text })));
  const job = workflowInfo().memo?.daybook as DaybookJob;
  return { words: counted.reduce((sum, { words }) => sum + words, 0), organization: job.orgId };
}
