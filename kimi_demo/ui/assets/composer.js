// The fields that send (chat, tools, raw prompt). What is sent is tied to its own press and its own answer, not to Gradio's events:
// what is typed meanwhile stays, and what could not be sent comes back before it. What stands in a field survives a reload,
// a person's or Gradio's own after a lost connection.
(() => {
  "use strict";

  const kimi = window.kimi;
  const LATEST_MS = 5000; // a press that led to no sending is forgotten
  const SETTLE_MS = 500; // until the tab's state says that it runs
  const composers = new Map(); // kind -> Composer

  // submit(text, values, at): sends, and answers whether it could. at: what `now` gave at the press.
  // empties: what is sent leaves the field; enter: also by that key.
  class Composer {
    constructor(kind, button, { submit, now = () => null, empties = true, enter = true }) {
      Object.assign(this, { kind, button, submit, now, empties, enter });
      this.caught = [];
      this.sending = 0;
      this.line = Promise.resolve(); // one after the other, so that they stay in order
      this.known = new WeakSet();
      composers.set(kind, this);
    }

    field() { return document.querySelector(`#${this.kind}-input textarea`); }

    // Gradio asks for what is sent a moment after Enter; on a busy machine the next letters are in the field by then. So the
    // text is caught at the key itself, and only that is taken out of the field.
    catch() {
      const field = this.field();
      if (!field) return;
      const waiting = this.empties ? this.fresh().map((each) => each.text).join("") : "";
      const text = field.value.startsWith(waiting) ? field.value.slice(waiting.length) : field.value;
      this.caught.push({ text, at: performance.now() });
    }

    fresh() {
      while (this.caught.length && performance.now() - this.caught[0].at > LATEST_MS) this.caught.shift();
      return this.caught;
    }

    get busy() { return this.sending > 0 || document.documentElement.getAttribute(`data-${this.kind}`) === "running"; }

    send(text, values) {
      const caught = this.fresh().shift()?.text ?? text;
      const sent = caught.toWellFormed?.() ?? caught; // half a character cannot be sent
      if (!sent.trim() && this.busy) return; // a second press
      const field = this.field();
      if (this.empties && field?.value.startsWith(caught)) kimi.write(field, field.value.slice(caught.length)); // else it is not there any more
      const at = this.now();
      this.sending += 1;
      this.line = this.line.then(async () => {
        try {
          if (await this.submit(sent, values, at)) document.dispatchEvent(new CustomEvent("kimi:sent", { detail: { kind: this.kind } }));
          else if (this.empties) this.giveBack(sent);
        } finally {
          setTimeout(() => { this.sending -= 1; }, SETTLE_MS);
        }
      });
    }

    // A text that could not be sent, before what has been typed since.
    giveBack(text) {
      const since = this.field()?.value ?? "";
      kimi.write(this.field(), since && text ? `${text}\n${since}` : text || since);
    }

    // ---- drafts ----

    get draft() {
      try { return sessionStorage.getItem(`kimi-demo-draft-${this.kind}`); } catch { return null; } // private mode: it is lost then
    }

    keep() {
      this.known.add(this.field()); // what a person has begun to type is not replaced
      try { sessionStorage.setItem(`kimi-demo-draft-${this.kind}`, this.field().value); } catch { /* see above */ }
    }

    // Gradio puts a field in place when its tab is first shown, and values into it until `data-restored` is there.
    restore() {
      const field = this.field();
      if (!field || this.known.has(field) || !document.documentElement.hasAttribute("data-restored")) return;
      this.known.add(field);
      const { draft } = this;
      if (draft !== null && field.value !== draft) kimi.write(field, draft);
    }
  }

  const of = (target) => [...composers.values()].find((each) => target === each.field());

  document.addEventListener("input", (event) => of(event.target)?.keep());
  document.addEventListener("keydown", (event) => {
    const composer = event.key === "Enter" && !event.shiftKey && !event.isComposing ? of(event.target) : null;
    if (composer?.enter) composer.catch();
  }, true);
  document.addEventListener("click", (event) => {
    for (const composer of composers.values()) if (event.target.closest(composer.button)) composer.catch();
  }, true);
  new MutationObserver(() => composers.forEach((each) => each.restore()))
    .observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-restored"] });

  const stops = { chat: () => ({ chat: kimi.opened() }) };

  Object.assign(kimi, {
    compose: (...given) => new Composer(...given),
    send: (kind, text, values) => composers.get(kind).send(text, values),
    stop: (kind) => kimi.post(kind, `${kind}_stop`, stops[kind]?.() ?? {}),
  });

  // Tools: a question is sent with what the box of leave shows.
  kimi.compose("tools", "#tools-run", {
    now: () => document.querySelector("[data-bench-approve]")?.checked === true,
    submit: async (text, _, approve) => {
      const told = await kimi.post("tools", "tools_ask", { text, approve });
      if (told !== undefined) kimi.refresh("tools", true); // also where it was refused: another tab's question may be going on
      return Boolean(told);
    },
  });

  kimi.clear = async () => { if (await kimi.post("tools", "tools_clear", {})) kimi.refresh("tools"); };
})();
