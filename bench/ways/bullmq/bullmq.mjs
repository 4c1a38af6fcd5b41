// BullMQ at work for bullmq.go:
//
//   node bullmq.mjs schedule HOST PORT
//     reads a request a line, {"callers", "from", "count", "first", "step"} with times
//     in milliseconds and 0 callers for addBulk, and answers each with a line when it is
//     done: "ok", or what went wrong.
//   node bullmq.mjs work HOST PORT CONCURRENCY
//     prints "ready", then the numbers of the jobs that it starts, some a line; it reads
//     the numbers of those that have ended likewise. It stops at SIGTERM.

import { createInterface } from 'node:readline';
import { Queue, Worker } from 'bullmq';

const QUEUE = 'orders';
const TASK = 'cancel-order';
const DATA = { order: 42, customer: 'c-1234567890', action: 'cancel', n: 1 };
const BULK = 1000;

const [role, host, port, concurrency] = process.argv.slice(2);
// The lines must be waited for from when this is called on: earlier ones are lost.
const linesOfInput = () => createInterface({ input: process.stdin });

// BullMQ allows no colon in an id.
const idOf = (n) => 'order-' + String(n).padStart(14, '0');
const numberOf = (id) => Number(id.slice('order-'.length));

function jobOf({ from, first, step }, i) {
  const timestamp = Date.now();
  const delay = Math.max(0, Math.ceil(first + i * step) - timestamp);
  return { name: TASK, data: DATA, opts: { jobId: idOf(from + i), timestamp, delay } };
}

async function scheduleEach(queue, request) {
  let next = 0;
  const caller = async () => {
    while (next < request.count) {
      const { name, data, opts } = jobOf(request, next++);
      await queue.add(name, data, opts);
    }
  };
  await Promise.all(Array.from({ length: request.callers }, caller));
}

async function scheduleBulk(queue, request) {
  for (let i = 0; i < request.count; i += BULK) {
    const length = Math.min(BULK, request.count - i);
    await queue.addBulk(Array.from({ length }, (_, k) => jobOf(request, i + k)));
  }
}

async function schedule() {
  const queue = new Queue(QUEUE, { connection: { host, port: Number(port) } });
  await queue.waitUntilReady();
  for await (const line of linesOfInput()) {
    const request = JSON.parse(line);
    try {
      await (request.callers > 0 ? scheduleEach(queue, request) : scheduleBulk(queue, request));
      console.log('ok');
    } catch (error) {
      console.log(String(error).replaceAll('\n', ' '));
    }
  }
  await queue.close();
}

// tell prints what was started in one turn of the event loop in one line.
let started = [];
function tell(n) {
  if (started.push(n) === 1) {
    setImmediate(() => {
      process.stdout.write(started.join(' ') + '\n');
      started = [];
    });
  }
}

async function work() {
  const running = new Map();
  const worker = new Worker(
    QUEUE,
    (job) =>
      new Promise((end) => {
        const n = numberOf(job.id);
        running.set(n, end);
        tell(n);
      }),
    { connection: { host, port: Number(port) }, concurrency: Number(concurrency), removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  );
  worker.on('error', (error) => console.error(String(error)));
  linesOfInput().on('line', (line) => {
    for (const text of line.split(' ')) {
      const n = Number(text);
      running.get(n)();
      running.delete(n);
    }
  });
  process.once('SIGTERM', async () => {
    await worker.close();
    process.exit(0);
  });
  await worker.waitUntilReady();
  console.log('ready');
}

await (role === 'work' ? work() : schedule());
