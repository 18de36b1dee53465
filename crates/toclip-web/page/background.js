// Workers with an engine of their own, made from source in the page: file:// allows no other.

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
      this.waiting.set(id, { question, resolve, reject, since: performance.now() });
    });
  }

  /** Makes room for new questions: stops the worker once it has been busy with the present ones for long. */
  hurry() {
    const ids = [...this.waiting.keys()];
    if (!ids.length) return;
    const oldest = Math.min(...ids.map((id) => this.waiting.get(id).since));
    const left = PATIENCE - (performance.now() - oldest);
    if (left <= 0) this.drop(ids);
    else setTimeout(() => this.drop(ids), left);
  }

  /** Gives up those of the questions that are still waiting; others are asked again. */
  drop(ids) {
    const waiting = this.waiting;
    if (!ids.some((id) => waiting.has(id))) return;
    this.worker.terminate();
    this.start();
    for (const [id, asked] of waiting) {
      if (ids.includes(id)) asked.reject(new Error("stopped for a newer setting"));
      else {
        this.waiting.set(id, asked);
        this.worker.postMessage({ id, question: asked.question });
      }
    }
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
