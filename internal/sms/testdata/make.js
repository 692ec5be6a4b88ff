// Makes table.jsonl: see README.md.
const { SegmentedMessage } = require('sms-segments-calculator');

let seed = 28;
const random = () => { // mulberry32
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const below = (n) => Math.floor(random() * n);
const pick = (all) => all[below(all.length)];
const ascii = (s) => JSON.stringify(s).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

const seen = new Set();
// row prints the size of a text that consists of parts, each repeated.
const row = (...parts) => {
  parts = parts.filter(([, n]) => n > 0).map(([text, n]) => [text.toWellFormed(), n]);
  const text = parts.map(([part, n]) => part.repeat(n)).join('');
  if (seen.has(text)) return;
  seen.add(text);
  const m = new SegmentedMessage(text.toWellFormed());
  console.log(`[${ascii(m.encodingName)},${m.numberOfCharacters},${m.segmentsCount}${parts.map(([part, n]) => `,${ascii(part)},${n}`).join('')}]`);
};

const extension = ['\f', '[', '\\', ']', '^', '{', '|', '}', '~', '\u20ac'];
const gsm = [...'@\u00a3$\u00a5\u00e8\u00e9\u00f9\u00ec\u00f2\u00c7\n\u00d8\u00f8\r\u00c5\u00e5\u0394_\u03a6\u0393\u039b\u03a9\u03a0\u03a8\u03a3\u0398\u039e\u00c6\u00e6\u00df\u00c9 !"#\u00a4%&\'()*+,-./0123456789:;<=>?\u00a1ABCXYZ\u00c4\u00d6\u00d1\u00dc\u00a7\u00bfabcxyz\u00e4\u00f6\u00f1\u00fc\u00e0'];
const units = ['\u4e2d', '\u00e7', '`', '\u0410', '\u200b', '\t', '\u0000', '\ufffd', '\u2019'];
const graphemes = [
  '\ud83d\ude00', '\ud83d\udc4d\ud83c\udffd', '\ud83d\udc68\u200d\ud83d\udc69\u200d\ud83d\udc67\u200d\ud83d\udc66', '\ud83c\udde9\ud83c\uddf0', '\u2764\ufe0f', '\u2764\ufe0f\u200d\ud83d\udd25',
  'e\u0301', 'n\u0303\u0323', '\u0e01\u0e33', '\u0928\u093f', '\u1100\u1161\u11a8', '\uac00\u11a8', '1\ufe0f\u20e3', '\ud83c\udff4\udb40\udc67\udb40\udc62\udb40\udc65\udb40\udc6e\udb40\udc67\udb40\udc7f',
  '\u0600\u0661', '\r\n', '\ud83e\uddd1\ud83c\udffb\u200d\ud83e\udd1d\u200d\ud83e\uddd1\ud83c\udfff', '\ud800', '\udc00x', 'a' + '\u0301'.repeat(40), 'a' + '\u0301'.repeat(80),
];

// Every character of the two planes' beginnings, alone, and between two others.
row();
for (let c = 0; c < 0x250; c++) row([String.fromCodePoint(c), 1]);
for (let c = 0x370; c < 0x400; c++) row([String.fromCodePoint(c), 1]);

// The lengths at which another segment begins.
const around = [152, 153, 154, 159, 160, 161, 305, 306, 307, 308, 459, 460];
const aroundUnits = [66, 67, 68, 69, 70, 71, 133, 134, 135, 201, 202];
for (const n of around) {
  row(['a', n]);
  row(['\u20ac', n >> 1], ['a', n & 1]);
  row(['a', n & 1], ['\u20ac', n >> 1]);
  row(['\r\n', n >> 1], ['a', n & 1]);
  for (const e of extension) {
    row(['a', n - 2], [e, 1]);
    row(['a', n - 1], [e, 1]);
    row([e, 1], ['a', n - 2]);
  }
  for (const border of [152, 153, 159, 305, 306]) if (border < n) row(['a', border], [pick(extension), 1], ['b', n - border - 1]), row(['a', border], [pick(extension), 1], ['b', n - border - 2]);
}
for (const n of aroundUnits) {
  for (const u of units) row([u, n]), row([u, 1], ['a', n - 1]), row(['a', n - 1], [u, 1]), row(['{', n - 1], [u, 1]);
  for (const g of graphemes) {
    for (const d of [0, 1, 2]) if (n >= g.length + d && random() < 0.35) row(['a', n - g.length - d], [g, 1], ['\u4e2d', d]);
    if (random() < 0.5) row([g, Math.floor(n / g.length)], ['b', n % g.length]);
    for (const border of [64, 65, 66, 67, 69]) if (border < n - g.length && random() < 0.1) row(['\u4e2d', border], [g, 1], ['b', n - border - g.length]);
  }
}

// Sequences of the classes of graphemes, in which the rules and their exceptions meet.
const classes = ['a', '\u4e2d', '\r', '\n', '\u0001', '\u200b', '\u0301', '\u200d', '\ufe0f', '\u0903', '\u0600', '\ud83c\udde9', '\ud83c\uddf0', '\ud83d\udc4d', '\ud83d\udc67', '\ud83c\udffd', '\u2764', '\u1100', '\u1161', '\u11a8', '\uac00', '\uac01', '\ud83d\ude00', '\ufffd'];
for (let i = 0; i < 1100; i++) {
  let text = '';
  for (let n = 2 + below(i < 550 ? 4 : 9); n > 0; n--) text += pick(classes);
  row([text, 1 + (below(8) === 0 ? below(60) : 0)]);
}

// Texts of all kinds.
const any = () => {
  switch (below(9)) {
    case 0: case 1: case 2: return pick(gsm);
    case 3: return pick(extension);
    case 4: return pick(units);
    case 5: return pick(graphemes.slice(0, -2));
    case 6: return String.fromCodePoint(below(0x3000));
    case 7: return String.fromCodePoint(below(0x110000));
    default: return String.fromCodePoint(0x1f000 + below(0x1000));
  }
};
for (let i = 0; i < 75; i++) {
  let text = '';
  for (let n = pick([5, 20, 60, 68, 70, 140]); n > 0; n--) text += i % 3 === 0 ? pick(below(6) ? gsm : extension) : i % 3 === 1 ? pick(gsm) : any();
  row([text, 1]);
  if (i % 9 === 1) row([text, 1], ['\ud83d\ude00', 1]);
}
for (let i = 0; i < 300; i++) {
  let text = '';
  for (let n = 1 + below(6); n > 0; n--) text += any();
  row([text, 1 + below(40)]);
}
