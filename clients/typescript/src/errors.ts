/** What a handler may throw, and what can be said of it. */

/** Fails an attempt with a code, of 1 to 64 capital letters, digits and "_". */
export class JobError extends Error {
  constructor(message: string, readonly code = "HANDLER_ERROR") {
    super(message);
  }
}

/** Makes the job a dead letter, even if attempts are left. */
export class Final extends JobError {}

/** Fails the attempt. The next one, if one is left, begins after so many seconds. */
export class RetryAfter extends JobError {
  constructor(readonly seconds: number, message: string, code = "HANDLER_ERROR") {
    super(message, code);
  }
}

/** Puts the job off for so many seconds, at least one. No attempt is counted. */
export class Snooze extends Error {
  readonly seconds: number;
  constructor(seconds: number) {
    const known = Math.max(delay(seconds) ?? 1, 1);
    super(`snoozed for ${known} s`);
    this.seconds = known;
  }
}

/** Ends the job as cancelled, because there is nothing left to do. */
export class Cancel extends Error {}

/** A delay that the database can hold, of thirty years at most; null when it is no number of seconds. */
export function delay(seconds: number): number | null {
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 1e9) : null;
}

/** The text of what was thrown, which may be anything. */
export function textOf(thrown: unknown): string {
  try {
    return String(thrown).replaceAll("\0", "");
  } catch {
    return "what was thrown has no text";
  }
}
