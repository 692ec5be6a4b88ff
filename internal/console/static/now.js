// Draws the last hour as lines, of the numbers that stand in the live part of the page.
const plots = document.querySelector("#plots");
const live = document.querySelector("#live");
const looks = {
  delivered: { label: "Delivered", color: "--good" },
  refused: { label: "Refused", color: "--bad", dash: [6, 3] },
  unknown: { label: "Unknown", color: "--odd", dash: [2, 3] },
  p50: { label: "Typical delay", color: "--link", points: { show: true, size: 6 } }, // a minute alone has no line
  p99: { label: "Slowest 1 %", color: "--odd", dash: [6, 3], points: { show: true, size: 6 } },
};
const height = 180;
let drawn = [];

// series returns the numbers to draw; null if there are none.
function series() {
  const from = document.querySelector("#series");
  return from ? JSON.parse(from.dataset.series) : null;
}

// Times are shown in the zone of the page.
const zone = plots?.dataset.zone;
const clock = zone && new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone });
const tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone);
const clockTimes = (_, seconds) => seconds.map((s) => clock.format(s * 1000));

const valuesOf = (numbers, names) => [numbers.at, ...names.map((name) => numbers[name])];

// draw draws the plots, at first and when the colours change.
function draw() {
  const numbers = series();
  for (const { plot } of drawn) plot.destroy();
  drawn = [];
  plots.hidden = !numbers;
  if (!numbers) return;
  const css = getComputedStyle(document.documentElement);
  const color = (name) => css.getPropertyValue(name).trim();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
  for (const box of plots.querySelectorAll("[data-lines]")) {
    const names = box.dataset.lines.split(" ");
    const lines = names.map((name) => ({ label: looks[name].label, stroke: color(looks[name].color), width: 2, dash: looks[name].dash, points: looks[name].points, spanGaps: false }));
    const axes = [{ ...axis, values: clockTimes }, { ...axis, size: 60 }];
    const scales = { y: { range: (_, low, high) => [0, Math.max(high, 1)] } };
    const options = { width: box.clientWidth, height, tzDate, axes, scales, legend: { live: false }, series: [{}, ...lines] };
    drawn.push({ names, box, plot: new uPlot(options, valuesOf(numbers, names), box) });
  }
}

// follow hands new numbers to the plots.
function follow() {
  const numbers = series();
  if (!numbers || drawn.length === 0) return draw();
  for (const { names, plot } of drawn) plot.setData(valuesOf(numbers, names));
}

if (plots && live && window.uPlot) {
  draw();
  new MutationObserver(follow).observe(live, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-series"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => {
    for (const { plot, box } of drawn) plot.setSize({ width: box.clientWidth, height });
  }).observe(plots);
}
