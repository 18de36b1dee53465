// The theory: questions in JSON to the WebAssembly module, answers in JSON.

export async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

export class Engine {
  static async start(code) {
    const engine = new Engine();
    engine.module = await WebAssembly.compile(code);
    await engine.restart();
    return engine;
  }

  async restart() {
    this.exports = (await WebAssembly.instantiate(this.module, {})).exports;
  }

  /** The answer, or an Error with one sentence for people. */
  ask(question) {
    const text = new TextEncoder().encode(JSON.stringify(question));
    return this.call(this.exports.ask, text);
  }

  /** The content of a dropped file. */
  readFile(bytes) {
    return this.call(this.exports.read_file, bytes);
  }

  call(entry, bytes) {
    let answer;
    try {
      const { memory, reserve, release } = this.exports;
      const at = reserve(bytes.length);
      new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
      const packed = entry(at, bytes.length);
      const [start, length] = [Number((packed >> 32n) & 0xffffffffn), Number(packed & 0xffffffffn)];
      answer = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, start, length)));
      release(start, length);
    } catch (trap) {
      // The memory of a module that stopped half-way is not to be trusted.
      this.restart();
      throw new Error("the computation stopped: the values are too extreme for it");
    }
    if (answer.error) throw new Error(answer.error);
    return answer.ok;
  }
}
