// Writes twilio.jsonl: requests with the answer of Twilio's own verifier. See README.md.
const twilio = require('twilio');
const { getExpectedTwilioSignature } = require('twilio/lib/webhooks/webhooks');

const token = '0123456789abcdef0123456789abcdef', other = 'fedcba9876543210fedcba9876543210';
const push = '0190a000-0000-7000-8000-000000000042';
const base = 'https://sq.example.com/callbacks/tok_1';
const status = (more) => ({ MessageSid: 'SM0123', SmsSid: 'SM0123', AccountSid: 'AC1', From: '+4512345678', To: '+4587654321', ApiVersion: '2010-04-01', ...more });
const inbound = (more) => ({ MessageSid: 'SM9', SmsSid: 'SM9', SmsStatus: 'received', AccountSid: 'AC1', NumMedia: '0', NumSegments: '1', From: '+4587654321', To: '+4512345678', ...more });

const urls = [
  base, `${base}?push=${push}&attempt=2`, `https://sq.example.com:443/callbacks/tok_1?push=${push}&attempt=1`,
  `https://sq.example.com:8443/callbacks/tok_1?push=${push}`, 'http://sq.example.com/callbacks/tok_1', 'http://sq.example.com:80/a?b=1',
  `https://[2001:db8::1]:8443/callbacks/t?push=${push}`, `${base}?a=%20b&c=d+e&f=%2B&push=${push}`, `${base}/%C3%A6`, `${base}?push=${push}&attempt=x&push=zzz`,
];
const forms = [
  status({ MessageStatus: 'delivered', SmsStatus: 'delivered' }),
  status({ MessageStatus: 'undelivered', SmsStatus: 'undelivered', ErrorCode: '30005' }),
  status({ MessageStatus: 'failed', ErrorCode: '30008', ErrorMessage: 'Unknown error' }),
  status({ MessageStatus: 'sent' }),
  inbound({ Body: 'STOP' }), inbound({ Body: 'Grüße & 😀 = 100 % +1\r\nzwei' }), inbound({ Body: '', OptOutType: 'STOP' }), inbound({ Body: 'arrêt', OptOutType: 'STOP' }),
  { b: ['2', '1', '2'], a: '', B: 'x', 'ü': 'ö', 'a b': 'c+d' },
  {},
];
const encode = (form) => {
  const p = new URLSearchParams();
  for (const [k, v] of Object.entries(form)) for (const one of [].concat(v)) p.append(k, one);
  return p.toString();
};
const line = (url, form, signature, sent = form, at = url) => console.log(JSON.stringify({
  url: at, body: encode(sent), signature, valid: twilio.validateRequest(token, signature, at, sent),
}));
for (const url of urls) for (const form of forms) {
  line(url, form, getExpectedTwilioSignature(token, url, form));
}
const url = urls[1], form = forms[0], right = getExpectedTwilioSignature(token, url, form);
line(url, form, getExpectedTwilioSignature(other, url, form));
line(url, form, right, { ...form, MessageStatus: 'undelivered' });
line(url, form, right, { ...form, More: '' });
line(url, form, right, form, url.replace('42', '43'));
line(url, form, right, form, url + '&x');
line(url, form, right, form, url.replace('https', 'http'));
line(url, form, right, form, url.replace('sq.', 'other.'));
line(url, form, right, form, url.replace('.com/', '.com:443/'));
line(url, form, '');
line(url, form, right.toLowerCase());
line(url, form, right.slice(0, -2));
