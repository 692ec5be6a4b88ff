// Distances of times from now, in the words of the server. Times are seconds since 1970. Now is counted from the time when the server drew
// the page, because the clock of the computer can be wrong.
const loaded = Date.now(), drawn = Number(document.body.dataset.now) || Math.floor(loaded / 1000);

export function distance(t) {
  const seconds = t - drawn - Math.floor((Date.now() - loaded) / 1000), far = Math.abs(seconds);
  if (far === 0) return "now";
  return seconds < 0 ? `${span(far)} ago` : `in ${span(far)}`;
}

function span(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  const [large, name, small, smallName] = s < 86400 ? [3600, "h", 60, "min"] : [86400, "d", 3600, "h"];
  const rest = Math.floor((s % large) / small);
  return `${Math.floor(s / large)} ${name}` + (rest > 0 && s < 10 * large ? ` ${rest} ${smallName}` : "");
}
