// <time-axis> moves a cursor along the axis that the server drew. The cursor stops at free times only; at other times, the element shows
// the rules and sends in the way. The links and forms of the page do the same without a script. Times are seconds since 1970.

import { distance } from "./distance.js";

// Axis holds the free times of a period and the times that each rule blocks.
class Axis {
  constructor(known, data) {
    Object.assign(this, { free: known.free, rules: known.rules, from: data.from, until: data.until });
  }

  // at returns the index of the first free span that ends after a time.
  at(t) {
    let low = 0, high = this.free.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.free[middle][1] > t) high = middle; else low = middle + 1;
    }
    return low;
  }

  isFree(t) {
    const span = this.free[this.at(t)];
    return span !== undefined && span[0] <= t;
  }

  // up returns the first free time from t on, and down the last one until t; null if the axis has none.
  up(t) {
    const span = this.free[this.at(t)];
    return span === undefined ? null : Math.max(t, span[0]);
  }

  down(t) {
    if (this.isFree(t)) return t;
    const span = this.free[this.at(t) - 1];
    return span === undefined ? null : span[1] - 1;
  }

  nearest(t) {
    const up = this.up(t), down = this.down(t);
    if (up === null || down === null) return up ?? down;
    return up - t <= t - down ? up : down;
  }

  // next returns the start of the free span after t, and previous the end of the one before it.
  next(t) {
    const i = this.at(t);
    const span = this.free[this.isFree(t) ? i + 1 : i];
    return span === undefined ? null : span[0];
  }

  previous(t) {
    const span = this.free[this.at(t) - 1];
    return span === undefined ? null : span[1] - 1;
  }

  // inTheWay are the rules that block a time, each with the stretches that cover it.
  inTheWay(t) {
    return this.rules
      .map((rule) => ({ ...rule, blocked: rule.blocked.filter((b) => (b.from === null || b.from <= t) && (b.until === null || t < b.until)) }))
      .filter((rule) => rule.blocked.length > 0);
  }
}

const two = (n) => String(n).padStart(2, "0");

// Clock shows times in a zone, as the server does.
class Clock {
  constructor(zone) {
    this.zone = zone;
    this.format = new Intl.DateTimeFormat("en", {
      timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
    });
  }

  shown(t) {
    const part = Object.fromEntries(this.format.formatToParts(t * 1000).map((p) => [p.type, Number(p.value)]));
    const ahead = Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) / 1000 - t;
    return { date: `${part.year}-${two(part.month)}-${two(part.day)}`, clock: `${two(part.hour)}:${two(part.minute)}:${two(part.second)}`, ahead };
  }

  local(t) {
    const s = this.shown(t);
    return `${s.date}T${s.clock}`;
  }

  zoneName(t) {
    if (this.zone === "UTC") return "UTC";
    const ahead = Math.round(this.shown(t).ahead / 60), minutes = Math.abs(ahead);
    return `${this.zone} (${ahead < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)})`;
  }

  text(t) {
    const s = this.shown(t);
    return `${s.date} ${s.clock} ${this.zoneName(t)}, ${distance(t)}`;
  }
}

const iso = (t) => new Date(t * 1000).toISOString().replace(".000Z", "Z");

function element(name, properties, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}

customElements.define("time-axis", class extends HTMLElement {
  connectedCallback() {
    this.data = JSON.parse(this.dataset.axis);
    this.clock = new Clock(this.data.zone);
    this.known = new Axis(this.data, this.data);
    this.cursor = this.data.cursor || null;
    this.svg = this.querySelector("svg");
    this.left = Number(this.svg.dataset.left);
    this.right = Number(this.svg.dataset.right);
    this.width = this.svg.viewBox.baseVal.width;
    this.addHandle();
    this.svg.addEventListener("pointerdown", (e) => this.press(e));
    this.addEventListener("click", (e) => this.button(e));
    for (const link of this.querySelectorAll('[data-do="choose"]')) this.chooseByKey(link);
    this.show();
    this.reveal();
  }

  addHandle() {
    this.handle = element("div", { className: "cursor-handle", tabIndex: 0 });
    for (const [name, value] of [["role", "slider"], ["aria-label", "Cursor of the time axis"], ["aria-valuemin", this.data.from], ["aria-valuemax", this.data.until - 1]]) {
      this.handle.setAttribute(name, value);
    }
    this.handle.addEventListener("keydown", (e) => this.key(e));
    this.chooseByKey(this.handle);
    this.handle.addEventListener("pointerdown", (e) => this.press(e));
    this.querySelector(".axis-plot").append(this.handle);
  }

  x(t) {
    const part = (t - this.data.from) / (this.data.until - this.data.from);
    return this.left + (this.right - this.left) * Math.min(Math.max(part, 0), 1);
  }

  // timeAt is the time under a pointer.
  timeAt(e) {
    const box = this.svg.getBoundingClientRect();
    const part = ((e.clientX - box.left) / box.width * this.width - this.left) / (this.right - this.left);
    return Math.round(this.data.from + Math.min(Math.max(part, 0), 1) * (this.data.until - 1 - this.data.from));
  }

  key(e) {
    const t = this.cursor ?? this.data.from, step = e.shiftKey ? 1 : this.data.step;
    const go = (to, snap) => { e.preventDefault(); this.go(to, snap); };
    const up = (wanted) => this.known.up(wanted), down = (wanted) => this.known.down(wanted);
    switch (e.key) {
      case "ArrowRight": case "ArrowUp": return go(t + step, up);
      case "ArrowLeft": case "ArrowDown": return go(t - step, down);
      case "PageUp": return go(t + 10 * step, up);
      case "PageDown": return go(t - 10 * step, down);
      case "Home": return go(this.data.from, up);
      case "End": return go(this.data.until - 1, down);
    }
  }

  // go moves the cursor to a wanted time, or to a free one that snap finds, and shows what was in the way.
  go(wanted, snap, reveal = true) {
    const t = Math.min(Math.max(wanted, this.data.from), this.data.until - 1), to = snap(t);
    if (to === null) {
      this.say(t, t < this.data.now && this.known.inTheWay(t).length === 0 ? "This is in the past. No free time here." : "No free time in this direction.");
      return;
    }
    this.cursor = to;
    this.show(t);
    if (reveal) this.reveal();
    history.replaceState(history.state, "", this.address({ cursor: iso(to) }));
  }

  // reveal scrolls to the cursor if the drawing is wider than the screen.
  reveal() {
    if (this.cursor === null) return;
    const box = this.querySelector(".axis-box"), at = this.x(this.cursor) / this.width * box.scrollWidth, edge = box.clientWidth / 8;
    if (at < box.scrollLeft + edge || at > box.scrollLeft + box.clientWidth - edge) box.scrollLeft = at - box.clientWidth / 2;
  }

  // show shows where the cursor stands, and why it does not stand at a time that was wanted.
  show(wanted) {
    this.handle.hidden = this.cursor === null;
    if (this.cursor === null) return;
    const t = this.cursor, x = this.x(t);
    this.handle.style.left = `${x / this.width * 100}%`;
    this.line("cursor", x);
    this.handle.setAttribute("aria-valuenow", t);
    this.handle.setAttribute("aria-valuetext", `${this.clock.text(t)}, ${this.known.isFree(t) ? "free" : "not free"}`);
    this.querySelector("[data-cursor]")?.replaceChildren(this.time(t));
    for (const name of ["kind-cursor", "send_at", "move_to"]) {
      const field = document.getElementById(`f-${name}`);
      if (field === null || wanted === undefined) continue;
      field.value = new Clock(field.form.elements.zone?.value ?? this.clock.zone).local(t);
      const exact = field.form.elements[`${name}_exact`];
      if (exact) exact.value = iso(t);
    }
    if (wanted !== undefined) this.say(wanted);
  }

  time(t) {
    const s = this.clock.shown(t);
    return element("time", { dateTime: iso(t) }, `${s.date} ${s.clock} `, element("span", { className: "zone" }, this.clock.zoneName(t)), " ",
      element("span", { className: "distance" }, distance(t)));
  }

  line(name, x) {
    let line = this.svg.querySelector(`line.${name}`);
    if (line === null) {
      line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      line.setAttribute("class", name);
      line.setAttribute("y1", 40);
      line.setAttribute("y2", this.svg.viewBox.baseVal.height);
      this.svg.append(line);
    }
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    return line;
  }

  // say shows whether a time is free, or the rules and sends in the way, also to screen readers. While a push is dragged, known is the axis
  // without the push, and to is its new time.
  say(wanted, text, known = this.known, to = this.cursor) {
    const place = this.querySelector("[data-why]"), dragged = known !== this.known;
    if (text === undefined && known.isFree(wanted)) {
      place.replaceChildren(element("p", {}, element("span", { className: "status status-ok" }, "free"), dragged ? ` ${this.clock.text(wanted)}.` : "",
        dragged || this.dataset.moving ? " The message can be moved here." : " A message of this kind can be sent here."));
      return;
    }
    const head = element("p", {}, element("span", { className: "status status-refused" }, "not free"), ` ${this.clock.text(wanted)}. ${text ?? ""}`);
    if (text === undefined && wanted < this.data.now) head.append("This is in the past. ");
    if (text === undefined && to !== null && to !== wanted) head.append(`${dragged ? "The message would move" : "The cursor moved"} to ${this.clock.text(to)}.`);
    place.replaceChildren(head, element("ul", {}, ...known.inTheWay(wanted).map((rule) => this.ruleItem(rule))));
  }

  ruleItem(rule) {
    const ids = [...new Set(rule.blocked.flatMap((b) => b.by))], more = rule.blocked.reduce((sum, b) => Math.max(sum, b.more), 0);
    const item = element("li", {}, element("strong", {}, rule.name), rule.quiet ? ": quiet hours" : ids.length > 0 ? ": full because of " : ": it allows nothing");
    ids.forEach((id, i) => {
      item.append(i > 0 ? "; " : "", element("a", { href: `/console/pushes/${encodeURIComponent(id)}` }, this.data.pushes[id] ?? "a message beyond this axis"));
    });
    if (more > 0) item.append(` and ${more} more`);
    return item;
  }

  button(e) {
    const action = e.target.closest("[data-do]")?.dataset.do;
    if (action === "choose") return this.choose(e);
    if (action !== "next" && action !== "previous") return;
    const to = this.cursor === null ? null : this.known[action](this.cursor);
    if (to === null) {
      if (this.cursor === this.data.cursor) return; // the link knows what lies beyond the axis
      e.preventDefault();
      location.assign(this.address({ at: iso(action === "next" ? this.data.until : this.data.from - 1), cursor: "" }));
      return;
    }
    e.preventDefault();
    this.go(to, (t) => t);
  }

  // chooseByKey has Enter choose where an element has the focus, once the key is up: held down, it would send the form that gets the focus.
  chooseByKey(element) {
    element.addEventListener("keydown", (e) => { if (e.key === "Enter") e.preventDefault(); });
    element.addEventListener("keyup", (e) => { if (e.key === "Enter") this.choose(e); });
  }

  // choose moves to the form, which has the time of the cursor.
  choose(e) {
    const field = document.getElementById("f-move_to") ?? document.getElementById("f-send_at");
    if (field === null || this.cursor === null) return;
    e.preventDefault();
    field.scrollIntoView({ block: "center" });
    field.focus();
  }

  address(parameters) {
    const to = new URL(location.href);
    to.pathname = new URL(this.data.other, location.href).pathname.replace(/\/free$/, ""); // also where a form was shown again
    to.hash = "";
    for (const [name, value] of Object.entries(parameters)) {
      if (value === "") to.searchParams.delete(name); else to.searchParams.set(name, value);
    }
    return to;
  }

  // press starts to move the cursor or, on a scheduled push, to drag the push.
  press(e) {
    if (e.button !== 0) return;
    e.preventDefault();
    const id = e.target.closest("[data-push]")?.dataset.push;
    if (id === undefined) this.handle.focus({ preventScroll: true });
    const drag = id === undefined ? null : this.drag(id);
    const move = (moved) => drag === null ? this.go(this.timeAt(moved), (t) => this.known.nearest(t), false) : drag.to(this.timeAt(moved));
    const target = e.currentTarget;
    target.setPointerCapture(e.pointerId);
    const end = (ended) => {
      for (const [name, f] of listeners) target.removeEventListener(name, f);
      removeEventListener("keydown", escape);
      drag?.end(ended.type === "pointerup");
    };
    const escape = (pressed) => { if (pressed.key === "Escape") end(pressed); };
    const listeners = [["pointermove", move], ["pointerup", end], ["pointercancel", end]];
    for (const [name, f] of listeners) target.addEventListener(name, f);
    addEventListener("keydown", escape);
    if (drag === null) move(e);
  }

  // drag moves a push. While it is dragged, the axis shows whether its time is free. When dropped, it is moved after a confirmation.
  drag(id) {
    let known = null, wanted = null;
    const show = () => {
      if (wanted === null) return;
      const line = this.line("ghost", this.x(wanted));
      if (known === null) return;
      line.classList.toggle("illegal", !known.isFree(wanted));
      this.say(wanted, undefined, known, known.nearest(wanted));
    };
    const asked = this.without(id).then((axis) => { known = axis; show(); }).catch((err) => this.say(this.data.now, `The free times without this message are unknown: ${err.message}.`));
    return {
      to: (t) => { wanted = t; show(); },
      end: async (dropped) => {
        if (dropped && wanted !== null) await asked;
        this.svg.querySelector("line.ghost")?.remove();
        if (!dropped || wanted === null || known === null) return;
        const to = known.nearest(wanted);
        if (to !== null) location.assign(this.address({ move: id, cancel: "", cursor: iso(to), at: iso(this.data.at) }));
      },
    };
  }

  async without(id) {
    const to = new URL(this.data.other, location.href);
    for (const [name, value] of [["without", id], ["from", iso(this.data.from)], ["until", iso(this.data.until)]]) to.searchParams.set(name, value);
    const answer = await fetch(to);
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    return new Axis(await answer.json(), this.data);
  }
});
