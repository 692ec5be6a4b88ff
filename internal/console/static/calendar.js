// <calendar-bars> lets people drag the bar of a draft to another start, or move it with the arrow keys. Dropped, or with Enter, it
// opens the page that shows what would change; each bar is a link to that page, and works without this. Times are seconds since 1970.

customElements.define("calendar-bars", class extends HTMLElement {
  connectedCallback() {
    this.svg = this.querySelector("svg");
    this.says = this.querySelector("[data-says]");
    if (this.svg === null) return;
    const of = this.svg.dataset;
    this.left = Number(of.left);
    this.right = Number(of.right);
    this.from = Number(of.from);
    this.until = Number(of.until);
    this.step = Number(of.step);
    this.clock = new Intl.DateTimeFormat("en", {
      timeZone: of.zone, hourCycle: "h23", weekday: "short", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", timeZoneName: "shortOffset",
    });
    for (const bar of this.svg.querySelectorAll("a[data-start]")) {
      bar.addEventListener("pointerdown", (e) => this.press(e, bar));
      bar.addEventListener("keydown", (e) => this.key(e, bar));
      bar.addEventListener("dragstart", (e) => e.preventDefault());
      bar.addEventListener("blur", () => this.put(bar, null));
      bar.addEventListener("click", (e) => this.click(e));
    }
  }

  // seconds converts pixels of the window to seconds of the axis.
  seconds(pixels) {
    const unit = this.svg.viewBox.baseVal.width / this.svg.getBoundingClientRect().width;
    return pixels * unit * (this.until - this.from) / (this.right - this.left);
  }

  // put shows a bar at a time; null: where it is.
  put(bar, at) {
    const start = Number(bar.dataset.start);
    if (at === null || at === start) {
      bar.removeAttribute("transform");
      bar.classList.remove("moving");
      delete bar.dataset.to;
      return;
    }
    const by = (at - start) * (this.right - this.left) / (this.until - this.from);
    bar.setAttribute("transform", `translate(${by} 0)`);
    bar.classList.add("moving");
    bar.dataset.to = at;
    this.says.textContent = `To ${this.text(at)}. Release it or press Enter for a preview, or press Escape to cancel.`;
  }

  text(at) {
    const part = Object.fromEntries(this.clock.formatToParts(at * 1000).map((p) => [p.type, p.value]));
    return `${part.weekday} ${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute} ${part.timeZoneName}`;
  }

  // snapped is the next time to one that is a whole number of steps away from what the clocks show; only a bar that is moved snaps.
  snapped(at) {
    const ahead = this.ahead(at);
    return Math.min(Math.max(Math.round((at + ahead) / this.step) * this.step - ahead, this.from), this.until - this.step);
  }

  // ahead returns the UTC offset of the zone at a time, in seconds.
  ahead(at) {
    const name = this.clock.formatToParts(at * 1000).find((p) => p.type === "timeZoneName").value;
    const m = /GMT([+-])(\d+)(?::(\d+))?/.exec(name);
    return m === null ? 0 : (m[1] === "-" ? -1 : 1) * (Number(m[2]) * 3600 + Number(m[3] ?? 0) * 60);
  }

  open(bar) {
    const to = new URL(bar.href.baseVal, location.href);
    to.searchParams.set("to", new Date(Number(bar.dataset.to) * 1000).toISOString().replace(".000Z", "Z"));
    location.assign(to);
  }

  // click opens the page of a bar that was not moved, as any link, and nothing of one that was just dragged.
  click(e) {
    if (this.dragged) e.preventDefault();
    this.dragged = false;
  }

  key(e, bar) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -24, ArrowDown: 24 }[e.key];
    if (steps !== undefined && !e.altKey && !e.ctrlKey && !e.metaKey) {
      e.preventDefault();
      const day = e.key === "ArrowUp" || e.key === "ArrowDown";
      const at = Number(bar.dataset.to ?? bar.dataset.start);
      this.put(bar, this.snapped(at + (day ? Math.sign(steps) * 86400 : steps * this.step)));
    } else if (e.key === "Enter" && bar.dataset.to !== undefined) {
      e.preventDefault();
      this.open(bar);
    } else if (e.key === "Escape") {
      this.put(bar, null);
      this.says.textContent = "Not moved.";
    }
  }

  press(e, bar) {
    if (e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey) return;
    const began = e.clientX, start = Number(bar.dataset.start);
    this.dragged = false;
    bar.setPointerCapture(e.pointerId);
    const move = (moved) => {
      if (Math.abs(moved.clientX - began) < 4 && !this.dragged) return;
      this.dragged = true;
      this.put(bar, this.snapped(start + this.seconds(moved.clientX - began)));
    };
    const end = (ended) => {
      for (const [name, f] of listeners) bar.removeEventListener(name, f);
      removeEventListener("keydown", escape, true);
      if (ended.type === "pointerup" && bar.dataset.to !== undefined) this.open(bar);
      else this.put(bar, null);
    };
    const escape = (pressed) => { if (pressed.key === "Escape") end(pressed); };
    const listeners = [["pointermove", move], ["pointerup", end], ["pointercancel", end]];
    for (const [name, f] of listeners) bar.addEventListener(name, f);
    addEventListener("keydown", escape, true);
  }
});
