// Files dropped on the page or chosen: experiments, residuals, training logs. They stay on this machine.

import { escape } from "./words.js";
import { FIRST } from "./state.js";
import { isClassifier } from "./classification.js";

const LARGEST = 64 * 1024 * 1024;

export class Dropping {
  constructor(app) {
    this.app = app;
    this.log = document.getElementById("log");
    const input = document.getElementById("file");
    input.addEventListener("change", () => this.take(input.files[0]).then(() => (input.value = "")));
    addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    addEventListener("dragleave", () => document.body.classList.remove("dropping"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      this.take(event.dataTransfer.files[0]);
    });
  }

  async take(file) {
    if (!file) return;
    const { app } = this;
    try {
      if (file.size > LARGEST) throw new Error("the file is larger than 64 MB; use the command `toclip` instead");
      const found = app.engine.readFile(new Uint8Array(await file.arrayBuffer()));
      app.complain("");
      this.log.hidden = found.kind !== "log";
      if (found.kind === "experiment") app.change({ experiment: found.experiment });
      if (found.kind === "residuals") this.useResiduals(found, file.name);
      if (found.kind === "log") this.showAdvice(found, file.name);
    } catch (error) {
      app.complain(`${file.name}: ${error.message.replace(/\.$/, "")}.`);
    }
  }

  useResiduals({ values, count }, name) {
    // Classification has no noise to replace.
    this.app.edit((e) => ({ ...(isClassifier(e) ? FIRST : e), noise: { family: "empirical", values } }));
    if (this.app.state.experiment.noise?.values !== values) return;
    const reduced = values.length < count ? `, reduced to ${values.length} quantiles` : "";
    this.app.complain(`${name}: ${count === 1 ? "1 residual is" : `${count} residuals are`} now the noise${reduced}. The file stays on this machine.`);
  }

  showAdvice({ headline, reasons, code, format, norms }, name) {
    const items = reasons.map((reason) => `<li>${escape(reason)}</li>`).join("");
    const block = code?.lines.join("\n") ?? "";
    this.log.innerHTML =
      `<h2>${escape(headline)}</h2><p>${escape(name)}: ${escape(format)}, ${norms} gradient norms.</p><ul>${items}</ul>` +
      (block ? `<pre tabindex="0">${escape(block)}</pre>` : "") +
      `<p>This is the advice of <code>toclip advise</code> on a training log; the pictures below are the theory for least squares.</p>`;
    this.log.scrollIntoView({ block: "nearest" });
  }
}
