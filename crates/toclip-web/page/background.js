// Workers with an engine of their own, made from source in the page so that file:// works.

/* global WORKER_SOURCE */

export class Background {
  constructor(code) {
    const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.postMessage({ code });
    this.waiting = new Map();
    this.next = 0;
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
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
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
}
