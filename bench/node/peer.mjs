// What the worker processes of the benchmarks have in common: what they are told by standard input, and the lines that they tell.
//
//   ready       the process waits for a line on its standard input, or works already
//   b N T       the handler of job N begins at T, in nanoseconds since 1970; a process that counts tells the first only
//   e N T       it ends
//   d N         N jobs are done; told by a process that counts, whenever that has changed
import { createInterface } from "node:readline";

export const config = JSON.parse(process.env.BENCH_NODE);

const lines = createInterface({ input: process.stdin });
export const ended = new Promise((resolve) => lines.once("close", resolve));

const tell = (line) => process.stdout.write(`${line}\n`);
const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;

// told says that the process is ready, and waits for the line.
export const told = () => {
  const line = new Promise((resolve) => lines.once("line", resolve));
  ready();
  return line;
};
export const ready = () => tell("ready");

let counts = false;
let first = true;
let all = 0;
let reported = 0;

// counting has the process tell how many jobs are done, instead of each beginning and end.
export const counting = () => {
  counts = true;
  const report = () => {
    if (all !== reported) {
      reported = all;
      tell(`d ${all}`);
    }
  };
  setInterval(report, 5).unref();
  process.once("exit", report);
};

export const begun = (number) => {
  if (first || !counts) {
    first = false;
    tell(`b ${number} ${now()}`);
  }
};
export const finished = (number) => {
  if (!counts) {
    tell(`e ${number} ${now()}`);
  }
};
export const done = (n) => {
  all += n;
};
