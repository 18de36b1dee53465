// Workers with an engine of their own, made from source in the page so that file:// works.

/* global WORKER_SOURCE */

/** A question that runs longer than this is dropped for a newer one. */
const PATIENCE = 300;

export class Background {
  constructor(code) {
    this.code = code;
    this.url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    this.next = 0;
    this.start();
  }

  start() {
    this.waiting = new Map();
    this.worker = new Worker(this.url);
    this.worker.postMessage({ code: this.code });
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error) reject(new Error(data.error));
      else resolve(data.answer);
    };
  }

  ask(question) {
    const id = this.next++;
    this.worker.postMessage({ id, question });
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, since: performance.now() });
    });
  }

  /** Makes room for a new question: stops the worker if it has been busy for long. */
  hurry() {
    const waiting = [...this.waiting.values()];
    if (!waiting.some(({ since }) => performance.now() - since > PATIENCE)) return;
    this.worker.terminate();
    this.start();
    waiting.forEach(({ reject }) => reject(new Error("stopped for a newer setting")));
  }
}

/** Runs the latest task only: a task checks `current()` between its questions and gives up. */
export class Latest {
  constructor() {
    this.generation = 0;
    this.running = Promise.resolve();
  }

  start(task) {
    const generation = ++this.generation;
    const current = () => generation === this.generation;
    this.running = this.running.then(async () => {
      if (current()) await task(current);
    });
    return this.running;
  }

  /** Waits for the task, and for those that it starts. */
  async settled() {
    for (let last; last !== this.running; ) await (last = this.running);
  }
}
