// A client of Daybook's HTTP API. Its types are generated from the API's OpenAPI document (schema.ts): addresses, parameters, bodies and answers.
import createClient, { type Client, type ClientOptions } from "openapi-fetch";
import { setTimeout as sleep } from "node:timers/promises";
import type { components, paths } from "./schema.js";

export type { components, paths } from "./schema.js";

export type Job = components["schemas"]["JobResponse"];

/** An answer that is an error (RFC 9457): `code` is stable, `detail` says what to do. */
export class DaybookError extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(`${code}: ${detail}`);
    this.name = "DaybookError";
  }
}

export interface DaybookOptions extends Omit<ClientOptions, "baseUrl"> {
  /** The server's address, such as http://127.0.0.1:8080. */
  baseUrl: string;
  /** A token of `daybook tokens create`. */
  token: string;
}

/** Returns a client that sends the token with each request, and throws a DaybookError for each answer that is an error. */
export function createDaybook({ token, ...options }: DaybookOptions): Client<paths> {
  const client = createClient<paths>(options);
  client.use({
    onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${token}`);
      return request;
    },
    async onResponse({ response }) {
      if (response.ok) return undefined;
      const problem = (await response.clone().json().catch(() => ({}))) as { code?: string; detail?: string; title?: string };
      throw new DaybookError(response.status, problem.code ?? "HTTP_ERROR", problem.detail ?? problem.title ?? response.statusText);
    },
  });
  return client;
}

/** Waits until a job has ended, and returns it. `timeout` is in seconds. */
export async function waitForJob(client: Client<paths>, id: string, timeout = 30): Promise<Job> {
  const until = performance.now() + timeout * 1000;
  for (let pause = 50; ; pause = Math.min(2 * pause, 2000)) {
    const { data } = await client.GET("/api/jobs/{id}", { params: { path: { id } } });
    if (data && ["completed", "failed", "cancelled"].includes(data.state)) return data;
    if (performance.now() + pause > until) throw new Error(`job ${id} has not ended within ${timeout} s`);
    await sleep(pause);
  }
}
