// Writes sendgrid.jsonl and mailgun.jsonl: requests with the answers of other verifiers. See README.md.
const fs = require('fs');
const { EventWebhook } = require('@sendgrid/eventwebhook'), { Ecdsa, PrivateKey } = require('starkbank-ecdsa');
const mailgun = require('mailgun-js'), crypto = require('crypto');
Date.now = () => 1770918200 * 1000; // mailgun-js rejects old timestamps, and a token that it has seen
const push = '0190a000-0000-7000-8000-000000000042';

const out = { sendgrid: [], mailgun: [] };
const verify = (key, body, signature, timestamp) => {
  try { const w = new EventWebhook(); return w.verifySignature(w.convertPublicKeyToECDSA(key), body, signature, timestamp); } catch { return false; }
};
const sendgrid = (key, body, signature, timestamp) => out.sendgrid.push({ key, body, signature, timestamp: String(timestamp), valid: verify(key, body, signature, timestamp) });

// These were signed by SendGrid itself: they are in the tests of @sendgrid/eventwebhook.
const real = { email: 'hello@world.com', event: 'dropped', reason: 'Bounced Address', sg_event_id: 'ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA', sg_message_id: 'LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0', 'smtp-id': '<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>', timestamp: 1600112492 };
sendgrid('MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==', JSON.stringify([real]) + '\r\n', 'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=', '1600112502');
const two = [
  { email: 'invalid@gmail.com', event: 'processed', send_at: 0, sg_event_id: 'cHJvY2Vzc2VkLTE5OTQyMTEyLXFOd0JMZ1BRUWpXNkRKdktRd1NBYnctMA', sg_message_id: 'qNwBLgPQQjW6DJvKQwSAbw.filterdrecv-canary-547b64655b-cw6zx-1-6089EA4A-56.0', 'smtp-id': '<qNwBLgPQQjW6DJvKQwSAbw@ismtpd0178p1mdw1.sendgrid.net>', timestamp: 1619651146 },
  { email: 'invalid@gmail.com', event: 'bounce', ip: '167.89.101.76', reason: '552 5.2.2 The email account that you tried to reach is over quota and inactive. Please direct the recipient to https://support.google.com/mail/?p=OverQuotaPerm c17si1130468pgv.34 - gsmtp', sg_event_id: 'Ym91bmNlLTAtMTk5NDIxMTItcU53QkxnUFFRalc2REp2S1F3U0Fidy0w', sg_message_id: 'qNwBLgPQQjW6DJvKQwSAbw.filterdrecv-canary-547b64655b-cw6zx-1-6089EA4A-56.0', 'smtp-id': '<qNwBLgPQQjW6DJvKQwSAbw@ismtpd0178p1mdw1.sendgrid.net>', status: '5.2.2', timestamp: 1619651147, tls: 1, type: 'blocked' },
];
sendgrid('MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ4LIFtWztlsF7skFqOncjD1lun4H5w8XOhyOArHW9RcIx/FfEzx6cikC/yPfUvwaX/JScE7Fc9CJD2afQ9Ok3Q==', JSON.stringify(two).split('},{').join('},\r\n{') + '\r\n', 'MEYCIQC/I4o6vCgqRYrTljjoVWB/GRWNtxeePlLMHr3x9ETeRQIhAIpV+03nREPTTHWSW0wIOA0EoMPdcNgXa70yCaqDJlu5', 1619651159);

// These are signed with a key of SendGrid's own library.
const { p256 } = require('starkbank-ecdsa/ellipticcurve/curve');
const own = new PrivateKey(p256), key = own.publicKey().toPem().replace(/-----[^-]+-----|\s/g, '');
const event = (more) => ({ email: 'anna@example.com', timestamp: 1770918175, 'smtp-id': `<${push}@example.com>`, sg_event_id: 'e', sg_message_id: 'm.0', ...more });
const batches = [
  [event({ event: 'delivered', response: '250 OK' })],
  [event({ event: 'bounce', type: 'bounce', status: '5.1.1', reason: '550 5.1.1 no such user', bounce_classification: 'Invalid Address' }), event({ event: 'spamreport' }), event({ event: 'open' })],
  [event({ event: 'delivered', 'smtp-id': undefined, push })], [], [event({ event: 'dropped', reason: 'Grüße 😀' })],
];
for (const batch of batches) for (const timestamp of ['1770918180', '0', 'x']) {
  const body = JSON.stringify(batch), signature = Ecdsa.sign(timestamp + body, own).toBase64();
  sendgrid(key, body, signature, timestamp);
  sendgrid(key, body + ' ', signature, timestamp);
  sendgrid(key, body, signature, timestamp + '1');
  sendgrid(out.sendgrid[0].key, body, signature, timestamp);
}
sendgrid(key, '[]', '', '1');
sendgrid(key, '[]', 'AAAA', '1');

const token = 'a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0';
const line = (signingKey, timestamp, t, signature) => out.mailgun.push({
  body: JSON.stringify({ signature: { timestamp, token: t, signature }, 'event-data': { event: 'delivered', timestamp: 1770918175.592, recipient: 'anna@example.com', message: { headers: { 'message-id': `${push}@example.com` } } } }),
  valid: mailgun({ apiKey: 'signing-key-1', domain: 'example.com', mute: true }).validateWebhook(timestamp, t, signature),
});
for (const [k, t] of [['signing-key-1', token], ['another', token], ['signing-key-1', 'ü']]) for (const timestamp of ['1770918180', 1770918180]) {
  const mac = crypto.createHmac('sha256', k).update(timestamp + t).digest('hex');
  line(k, timestamp, t, mac);
  line(k, timestamp, t + '0', mac);
  line(k, timestamp + '0', t, mac);
  line(k, timestamp, t, mac.slice(1));
}
for (const name in out) fs.writeFileSync(name + '.jsonl', out[name].map((o) => JSON.stringify(o) + '\n').join(''));
