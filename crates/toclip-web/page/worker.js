// Answers questions that take longer than a frame, one after the other.

import { Engine } from "./engine.js";

let started;

self.onmessage = async ({ data }) => {
  if (data.code) {
    started = Engine.start(data.code);
    return;
  }
  const engine = await started;
  try {
    self.postMessage({ id: data.id, answer: engine.ask(data.question) });
  } catch (error) {
    self.postMessage({ id: data.id, error: error.message });
  }
};
