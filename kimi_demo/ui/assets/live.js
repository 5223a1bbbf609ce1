// Follows runs: one event stream per shown group while something is being written, none otherwise
// (over HTTP/1.1 a browser keeps six connections, so idle tabs must hold none).
// What arrives are patches made by kimi_demo/ui/view; this file only carries them out.
(() => {
  "use strict";

  const KINDS = ["chat", "tools", "batch", "raw", "pair"];
  const SEGMENT = 4096; // characters of running text per element: a frozen segment is never laid out again
  const LONGEST_LINE = 2 * SEGMENT; // of which as much stays in one element
  const streams = new Map(); // kind -> EventSource
  const again = new Set(); // kinds to follow again when their stream has ended
  const wantsEnd = new Set(); // kinds whose box goes to its end at the next start
  const touched = new Map(); // <details> id -> whether the person left it open

  const byId = (id) => document.getElementById(id);
  const holder = (kind) => byId(kind === "batch" ? "batch-results" : kind)?.querySelector(".live");

  // ---- patches -------------------------------------------------------------------------------------------------

  const apply = {
    set(element, html) { element.innerHTML = html; element.dataset.length = ""; revive(element); },
    add(element, html) { element.insertAdjacentHTML("beforeend", html); revive(element); },
    text: appendText,
    open(element, open) { if (!touched.has(element.id)) element.open = Boolean(open); },
    state(element, state) { element.dataset.state = state; },
    lazy(element, source) { element.dataset.lazy = source; if (element.closest("details")?.open) load(element); },
  };

  // A finished thought comes when somebody opens it; until then nothing, or what was shown while it was written.
  async function load(element) {
    const source = element.dataset.lazy;
    delete element.dataset.lazy;
    try {
      const answer = await fetch(source, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      element.innerHTML = await answer.text();
      revive(element);
    } catch {
      element.dataset.lazy = source;
      if (!element.hasChildNodes()) element.textContent = element.dataset.failed;
    }
  }

  document.addEventListener("toggle", (event) => {
    if (event.target.open) for (const each of event.target.querySelectorAll(":scope > [data-lazy]")) load(each);
  }, true); // it does not bubble

  // Grows by appending. A segment is closed at a line break (in a line longer than that, between two words), so that the cost of
  // one more token does not depend on how much stands there already.
  function appendText(element, text) {
    let segment = element.lastElementChild;
    if (!segment || !segment.classList.contains("segment")) segment = newSegment(element);
    while (segment.firstChild.length + text.length > SEGMENT) {
      const length = segment.firstChild.length;
      const most = Math.max(1, LONGEST_LINE - length);
      let cut = text.indexOf("\n", Math.max(0, SEGMENT - length));
      const atBreak = cut >= 0 && cut <= most;
      if (!atBreak) {
        if (text.length < most) break;
        cut = text.lastIndexOf(" ", most - 1) + 1 || most;
        if (/[\uD800-\uDBFF]/.test(text[cut - 1])) cut += 1; // not between the halves of a character
      }
      segment.firstChild.appendData(text.slice(0, cut)); // a line break is the border between two block elements
      text = text.slice(atBreak ? cut + 1 : cut);
      segment = newSegment(element);
    }
    segment.firstChild.appendData(text);
  }

  function newSegment(element) {
    const segment = document.createElement("div");
    segment.className = "segment";
    segment.append(document.createTextNode(""));
    element.append(segment);
    return segment;
  }

  // After new HTML: a person's own opening and closing holds, running clocks are counted on from here, and what shows its name by
  // the style sheet alone gets one that is read out.
  function revive(element) {
    for (const button of element.querySelectorAll(".copy:not([aria-label])")) button.setAttribute("aria-label", byId("header").dataset.sayCopy);
    for (const details of element.querySelectorAll("details[id]")) {
      if (touched.has(details.id)) details.open = touched.get(details.id);
    }
    for (const clock of element.querySelectorAll(".clock[data-elapsed]")) {
      clock.began = performance.now() - 1000 * Number(clock.dataset.elapsed);
    }
  }

  setInterval(() => {
    for (const clock of document.querySelectorAll(".clock[data-elapsed]")) {
      if (clock.began && !clock.closest(".away")) clock.textContent = ((performance.now() - clock.began) / 1000).toFixed(1);
    }
  }, 100);

  // ---- staying at the end, unless the person scrolled away -------------------------------------------------------

  const atEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight < 40;

  function keepingEnd(kind, change) {
    const box = holder(kind);
    const boxes = [box, ...box.querySelectorAll('.thought[data-state="running"] .thought-text')].filter(Boolean);
    const following = boxes.filter(atEnd);
    change();
    for (const each of following) each.scrollTop = each.scrollHeight;
    const fresh = box.querySelector('.thought[data-state="running"] .thought-text');
    if (fresh && !boxes.includes(fresh)) fresh.scrollTop = fresh.scrollHeight;
  }

  // At once, or as soon as its tab is shown: what is hidden cannot be scrolled.
  function whenSeen(box, act) {
    if (box.clientHeight) { act(); return; }
    new ResizeObserver((_, observer) => {
      if (!box.clientHeight) return;
      observer.disconnect();
      act();
    }).observe(box);
  }

  // ---- streams ---------------------------------------------------------------------------------------------------

  function follow(kind) {
    const box = holder(kind);
    if (!box) return;
    streams.get(kind)?.close();
    const whole = [...box.querySelectorAll(":scope > [data-run]")].filter((each) => each.dataset.whole);
    const ids = box.dataset.group ? whole.map((each) => each.dataset.run) : [];
    const after = kind === "tools" ? ids.join(".") : ids.at(-1) || ""; // of questions, any may be replaced by another version of it
    const query = new URLSearchParams({ after, group: box.dataset.group || "", opened: kind === "chat" ? conversation : kind === "batch" ? window.kimi.batch?.opened() || "" : "" });
    const stream = new EventSource(`kimi/live/${kind}?${query}`);
    streams.set(kind, stream);
    stream.begun = Date.now();
    stream.addEventListener("start", (message) => { heard(kind, stream); start(kind, JSON.parse(message.data)); });
    stream.addEventListener("message", (message) => { heard(kind, stream); patch(kind, JSON.parse(message.data)); });
    stream.addEventListener("beat", () => heard(kind, stream));
    stream.addEventListener("whole", (message) => { const run = byId(`holder-${JSON.parse(message.data)}`); if (run) run.dataset.whole = "1"; });
    stream.addEventListener("end", () => {
      stream.close();
      streams.delete(kind);
      mark(kind, false);
      if (again.delete(kind)) follow(kind);
      else tell("end", { kind });
    });
    stream.addEventListener("open", () => box.classList.remove("away"));
    stream.addEventListener("error", () => {
      box.classList.add("away"); // the clock and the sentence about it are the style sheet's; the browser tries again by itself
      if (stream.readyState === EventSource.CLOSED) setTimeout(() => streams.get(kind) === stream && follow(kind), 2000);
    });
  }

  // A connection can die without a word (a laptop that slept, a proxy that forgot it). The app speaks at least every 15 s, and at
  // once on a new stream: where it does not, the browser has most likely taken up another dead connection.
  const SILENCE_MS = 35000;
  const FIRST_WORD_MS = 5000;
  const patience = new Map(); // kind -> milliseconds for the first word; grows, since a busy app may just be slow

  function heard(kind, stream) {
    stream.heard = Date.now();
    patience.delete(kind);
  }

  setInterval(() => {
    for (const [kind, stream] of streams) {
      const allowed = stream.heard ? SILENCE_MS : patience.get(kind) || FIRST_WORD_MS;
      if (Date.now() - (stream.heard || stream.begun) < allowed) continue;
      if (!stream.heard) patience.set(kind, Math.min(2 * allowed, SILENCE_MS));
      holder(kind)?.classList.add("away");
      follow(kind);
    }
  }, 1000);

  // To look again: a stream that is open brings by itself what is new, unless its end is on the way already.
  function refresh(kind, toEnd = false) {
    if (toEnd) wantsEnd.add(kind);
    if (streams.has(kind)) again.add(kind);
    else follow(kind);
  }

  // What the box must hold before patches come; its first `kept` runs are there already.
  function start(kind, { group, kept, running, html, system }) {
    const box = holder(kind);
    const stays = kept && !atEnd(box) && !wantsEnd.delete(kind);
    let left = kept;
    for (const child of [...box.children]) if (!child.dataset.run || left-- <= 0) child.remove();
    box.dataset.group = group;
    if (kind === "chat") open(group);
    box.insertAdjacentHTML("beforeend", html);
    revive(box);
    mark(kind, running);
    if (!stays) whenSeen(box, () => { box.scrollTop = box.scrollHeight; });
    tell("start", { kind, group, system });
  }

  // What else is in this folder listens to these.
  function tell(name, detail) {
    document.dispatchEvent(new CustomEvent(`kimi:${name}`, { detail }));
  }

  // ---- which conversation this tab has open ----------------------------------------------------------------------

  let conversation = recall();

  function recall() {
    try { return sessionStorage.getItem("kimi-demo-chat") || ""; } catch { return ""; } // see remember
  }

  // "" before there is one: the tab then makes the id of its next conversation itself.
  function open(id) {
    conversation = id || conversation || [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    try { sessionStorage.setItem("kimi-demo-chat", conversation); } catch { /* see remember */ }
    return conversation;
  }

  // Shows another conversation, or with "" a new one.
  function show(id) {
    conversation = id;
    open(id);
    holder("chat").dataset.group = "";
    again.delete("chat");
    notice("chat", "");
    follow("chat");
  }

  function patch(kind, patches) {
    keepingEnd(kind, () => {
      for (const [what, id, argument] of patches) {
        const element = byId(id);
        if (element) apply[what](element, argument);
      }
    });
    tell("patch", { kind });
  }

  // The style sheet shows Send or Stop by this.
  function mark(kind, running) {
    document.documentElement.setAttribute(`data-${kind}`, running ? "running" : "idle");
  }

  // ---- the badge: which model answers, and its state ---------------------------------------------------------------

  let badgeTimer = 0;
  async function badge() {
    clearTimeout(badgeTimer);
    const box = byId("model-badge");
    const shown = box?.querySelector(".live");
    let wait = 200; // until Gradio has put the header in place
    if (shown) {
      try {
        const answer = await fetch("kimi/badge", { cache: "no-store", signal: AbortSignal.timeout(15000) });
        if (!answer.ok) throw new Error(answer.status);
        const { html, settled } = await answer.json();
        if (shown.dataset.shown !== html) { shown.innerHTML = html; shown.dataset.shown = html; revive(shown); }
        box.classList.remove("away");
        wait = document.hidden ? 30000 : settled ? 10000 : 1000;
      } catch {
        shown.dataset.shown = "";
        box.classList.add("away");
        wait = 2000;
      }
    }
    badgeTimer = setTimeout(badge, wait);
  }

  // ---- what people do ------------------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const summary = event.target.closest("summary");
    if (summary?.parentElement.id) touched.set(summary.parentElement.id, !summary.parentElement.open);
    const act = event.target.closest("[data-act]");
    if (act) perform(act);
    const copy = event.target.closest("[data-copy]");
    if (copy) copyFrom(copy);
    const render = event.target.closest("[data-render]");
    if (render) { const box = render.closest(".thought-text"); render.disabled = true; box.dataset.lazy = render.dataset.render; load(box); }
    const fill = event.target.closest("[data-fill]");
    if (fill) fillIn(fill.dataset.fill, fill.dataset.text);
    const tab = event.target.closest("button[role=tab]");
    if (tab?.id) remember("kimi-demo-tab", tab.id);
  });

  function remember(key, value) {
    try { localStorage.setItem(key, value); } catch { /* private mode: the page works without memory */ }
  }

  // A button of a live view (kimi_demo/ui/acts.py): tell the server, then look again.
  async function perform(button) {
    const given = {};
    for (const { name, value } of button.attributes) if (name.startsWith("data-value-")) given[name.slice(11).replaceAll("-", "_")] = value;
    const { kind, act } = button.dataset;
    button.disabled = true;
    try {
      if (!(await post(kind, act, given))) return;
      if (KINDS.includes(kind)) refresh(kind, true); else badge();
      tell("act", { kind, act, button });
    } finally {
      button.disabled = false;
    }
  }

  // What the server answers; null where it refused, undefined where it was not reached. The tab's notice shows why.
  async function post(kind, act, given) {
    try {
      const answer = await fetch(`kimi/act/${act}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given), signal: AbortSignal.timeout(60000) });
      const told = await answer.json();
      notice(kind, answer.ok ? "" : told.html);
      return answer.ok ? told : null;
    } catch {
      const told = Object.assign(document.createElement("div"), { className: "notice", textContent: byId("header").dataset.sayAway });
      told.dataset.kind = "error";
      notice(kind, told.outerHTML);
      return undefined;
    }
  }

  function notice(kind, html) {
    const box = document.querySelector(`#${kind}-notice .html-container > div`) || byId(`${kind}-notice`);
    if (box) box.innerHTML = html;
  }

  async function copyFrom(button) {
    const source = button.parentElement.querySelector("pre, .copyable");
    await navigator.clipboard.writeText(source.innerText);
    button.dataset.done = "1";
    button.setAttribute("aria-label", byId("header").dataset.sayCopied);
    setTimeout(() => {
      delete button.dataset.done;
      button.setAttribute("aria-label", byId("header").dataset.sayCopy);
    }, 1500);
  }

  const fieldOf = (id) => byId(id)?.querySelector("textarea, input");

  function write(box, text) {
    if (!box) return;
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true })); // for Gradio, which keeps the value itself
  }

  function fillIn(id, text) {
    write(fieldOf(id), text);
    fieldOf(id)?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    // Not a batch: an afternoon's work is not ended by leaving its search field.
    const shown = KINDS.find((kind) => kind !== "batch" && holder(kind)?.offsetParent && document.documentElement.getAttribute(`data-${kind}`) === "running");
    if (shown) byId(`${shown}-stop`)?.click();
  });

  // A hidden tab soon gives its connection to those that are looked at; seen again, it picks up where things are.
  const HIDDEN_MS = 5000;
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => { for (const [kind, stream] of streams) { stream.close(); streams.delete(kind); } }, HIDDEN_MS);
    else for (const kind of KINDS) if (!streams.has(kind)) follow(kind);
  });

  // ---- beginning -----------------------------------------------------------------------------------------------------

  // Gradio puts a tab's content in place when the tab is first shown.
  const seen = new WeakSet();
  function arrived() {
    for (const kind of KINDS) {
      const box = holder(kind);
      if (box && !seen.has(box)) { seen.add(box); follow(kind); }
    }
  }
  new MutationObserver(arrived).observe(document.documentElement, { childList: true, subtree: true });

  function lastTab(tries) {
    let id = null;
    try { id = localStorage.getItem("kimi-demo-tab"); } catch { /* see remember */ }
    const tab = id && byId(id);
    if (tab) { if (tab.getAttribute("aria-selected") !== "true") tab.click(); }
    else if (id && tries) setTimeout(() => lastTab(tries - 1), 100);
  }

  window.kimi = { follow, refresh, show, post, notice, write, whenSeen, opened: () => open(conversation), conversation: () => conversation };
  badge();
  lastTab(50);
})();
