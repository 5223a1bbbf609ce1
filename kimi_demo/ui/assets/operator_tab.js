// What the operator's tabs have in common: a frame that is fetched, and a stream that is followed for as long as somebody looks.
(() => {
  "use strict";

  const QUIET_MS = 35000; // the server says something every 15 s
  const AGAIN_MS = 2000;

  // name: of the routes, kimi/NAME/frame and kimi/NAME/live, and of the element; frame: the class of what the operator is given, of a
  // stranger with "-stranger"; query(): what the stream is asked for; on: what to do with each of its messages; arrived(fresh): the frame
  // is there, for the first time or of a demo that was started anew (fresh), or as it was.
  window.kimi.operatorTab = ({ name, frame, query, on, arrived }) => {
    const box = () => document.getElementById(name);
    const looked = () => Boolean(box()?.offsetParent) && !document.hidden;
    let stream = null;
    let fetching = false;
    let waiting = 0;

    async function arrive() {
      if (!box() || fetching) return;
      fetching = true;
      try {
        const answer = await fetch(`kimi/${name}/frame`, { cache: "no-store", signal: AbortSignal.timeout(15000) });
        const holder = document.createElement("div");
        holder.innerHTML = await answer.text();
        const fresh = holder.querySelector(`.${frame}`);
        const shown = box().querySelector(`.${frame}`);
        const changed = !shown || shown.dataset.boot !== fresh?.dataset.boot;
        if (changed) box().replaceChildren(...holder.childNodes);
        arrived(changed);
      } catch { /* the stream's own waiting tells of it */ } finally { fetching = false; }
    }

    function follow() {
      stream?.close();
      stream = null;
      if (!looked() || !box().querySelector(`.${frame}`)) return;
      const made = new EventSource(`kimi/${name}/live?${new URLSearchParams(query())}`);
      stream = made;
      made.heard = Date.now();
      for (const [event, act] of Object.entries({ beat: () => {}, ...on })) {
        made.addEventListener(event, ({ data }) => {
          if (stream !== made) return;
          made.heard = Date.now();
          box().classList.remove("away");
          act(JSON.parse(data));
        });
      }
      made.addEventListener("error", () => {
        if (stream !== made) return;
        box().classList.add("away");
        // The browser would ask again for what it has; and a demo that was started anew has another frame.
        made.close();
        stream = null;
        waiting = setTimeout(async () => { waiting = 0; await arrive(); look(); }, AGAIN_MS);
      });
    }

    // One connection, and only while somebody looks: a browser keeps six.
    async function look() {
      if (!looked()) { stream?.close(); stream = null; return; }
      if (!box().querySelector(`.${frame}, .${frame}-stranger`)) await arrive();
      if (!stream && !waiting) follow();
    }
    setInterval(() => {
      if (stream && Date.now() - stream.heard > QUIET_MS) { box().classList.add("away"); follow(); }
      if (looked() !== Boolean(stream)) look();
    }, 500);
    document.addEventListener("visibilitychange", look);

    return { follow };
  };
})();
