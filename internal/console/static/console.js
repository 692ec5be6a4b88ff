import { distance } from "./distance.js";

// Tells the server the zone of this browser, so that "mine" means it; the server draws all times.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const known = document.cookie.split("; ").includes(`sendquota_tz=${zone}`);
if (zone && !known) {
  document.cookie = `sendquota_tz=${zone}; path=/console; max-age=31536000; samesite=strict`;
  const drawn = document.querySelector("time, input[name=zone]") && !document.body.hasAttribute("data-said"); // a notice that is shown once would be lost
  if (document.cookie.includes("sendquota_tz=") && drawn) location.reload();
}

// Updates the distances of times while a page is open, except in live regions, which screen readers would read out again.
setInterval(() => {
  if (document.hidden) return;
  for (const away of document.querySelectorAll("time > .distance")) {
    if (away.closest("[role=status], [role=alert], [aria-live]")) continue;
    const text = distance(Math.floor(Date.parse(away.parentElement.dateTime) / 1000));
    if (away.textContent !== text) away.textContent = text;
  }
}, 10_000);

// On a narrow screen the menu begins closed.
const menu = document.querySelector("details.menu");
if (menu && matchMedia("(max-width: 60rem)").matches) menu.open = false;

// Sends a form once, also on a double click: the answer to the second click would report a full limit, or hide the secret that the first
// one created. A form can be sent again when it is shown again, or when the user did not wait for the answer.
const sent = new Map(); // the button that sent a form
document.addEventListener("submit", (e) => {
  const form = e.target;
  if (e.defaultPrevented || form.getAttribute("method") !== "post" || form.hasAttribute("data-file")) return;
  const last = sent.get(form);
  if (last && last.button === e.submitter) return e.preventDefault(); // another button says something else
  clearTimeout(last?.timer);
  sent.set(form, { button: e.submitter, timer: setTimeout(() => sent.delete(form), 60_000) });
});
const forget = () => {
  for (const { timer } of sent.values()) clearTimeout(timer);
  sent.clear();
};
addEventListener("pageshow", forget);
addEventListener("keydown", (e) => { if (e.key === "Escape") forget(); });

// A button that copies stands before each call and each secret. Where the browser does not let pages copy, the text is selected.
for (const pre of document.querySelectorAll(".calls pre, pre.secret")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected: copy it with the keyboard";
    }
  });
  pre.before(button);
}

// A live page shows a notice when updates stop, and keeps the last numbers. It reconnects if it can.
const silence = 20_000; // in milliseconds; the server sends a sign of life every few seconds
const whyNot = { 401: "you are signed out", 404: "what it shows is gone", 429: "too many live pages are open, close some" };
for (const live of document.querySelectorAll("[hx-sse\\:connect]")) {
  const line = document.createElement("p");
  line.className = "stale";
  line.role = "status";
  live.before(line);
  const say = (why) => {
    const text = why ? `No longer live: ${why}. Reload the page.` : "";
    if (line.textContent !== text) line.textContent = text;
  };
  let heard = Date.now();
  const goesOn = () => {
    heard = Date.now();
    say("");
  };
  const failed = ({ detail }) => {
    const status = detail.status ?? detail.ctx?.response?.status;
    say(status ? (whyNot[status] ?? `the server returned error ${status}`) : "the connection is lost");
  };
  for (const name of ["htmx:sse:after:connection", "htmx:sse:after:message"]) live.addEventListener(name, goesOn);
  for (const name of ["htmx:sse:error", "htmx:response:error", "htmx:error"]) live.addEventListener(name, failed);
  document.addEventListener("visibilitychange", () => (heard = Date.now())); // hidden pages get no updates
  setInterval(() => {
    if (!document.hidden && Date.now() - heard > silence && !line.textContent) say("no update from the server for a while");
  }, 1000);
}
