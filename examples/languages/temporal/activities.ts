import { ApplicationFailure, heartbeat, sleep } from "@temporalio/activity";

/** Works a job of the type count_words, and a step of the workflow countTexts. */
export async function countWords({ text }: { text?: string }): Promise<{ words: number }> {
  if (!text) {
    throw ApplicationFailure.nonRetryable("the payload has no text", "NO_TEXT");
  }
  return { words: text.split(/\s+/).filter(Boolean).length };
}

/** Works a job of the type watch: it has no end of its own. Each heartbeat is the job's progress, and brings the news that the job was cancelled. */
export async function watch({ name }: { name: string }): Promise<void> {
  for (let seen = 1; ; seen++) {
    heartbeat({ name, seen: Math.min(seen, 3) });
    await sleep(200); // it throws when the activity is cancelled
  }
}
