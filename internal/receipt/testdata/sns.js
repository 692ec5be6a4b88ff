// Writes sns.jsonl: signed messages with the answers of two verifiers. See README.md.
const crypto = require('crypto'), fs = require('fs'), https = require('https'), { EventEmitter } = require('events');
const pem = fs.readFileSync('sns.pem', 'utf8'), key = fs.readFileSync(process.env.KEY, 'utf8');
// Both packages fetch the certificate. This answers in place of Amazon.
https.get = (url, options, cb) => {
  cb = cb || options;
  const res = new EventEmitter();
  res.statusCode = 200;
  cb(res);
  setImmediate(() => { res.emit('data', pem); res.emit('end'); });
  return new EventEmitter();
};
const SNSValidator = require('sns-validator'), PayloadValidator = require('sns-payload-validator');

const topic = 'arn:aws:sns:eu-west-1:123456789012:ses-events';
const certURL = 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem';
const push = '0190a000-0000-7000-8000-000000000042';
const fields = { Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'] };
fields.SubscriptionConfirmation = fields.UnsubscribeConfirmation = ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'];

function sign(m) {
  const text = fields[m.Type].filter((f) => f in m && m[f] !== null).map((f) => `${f}\n${m[f]}\n`).join('');
  const name = m.SignatureVersion === '2' ? 'RSA-SHA256' : 'RSA-SHA1';
  return { ...m, Signature: crypto.createSign(name).update(text, 'utf8').sign(key, 'base64') };
}
const mail = {
  timestamp: '2026-02-12T17:42:50.000Z', messageId: '0102018f-ses', source: 'shop@example.com', sendingAccountId: '123456789012', destination: ['anna@example.com'], headersTruncated: false,
  headers: [{ name: 'From', value: 'shop@example.com' }, { name: 'Message-ID', value: `<${push}@example.com>` }], commonHeaders: { from: ['shop@example.com'], messageId: `<${push}@example.com>`, subject: 'Grüße 😀' },
};
const bounce = { bounceType: 'Permanent', bounceSubType: 'General', bouncedRecipients: [{ emailAddress: 'anna@example.com', action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 user unknown' }], timestamp: '2026-02-12T17:42:55.000Z', feedbackId: 'f', reportingMTA: 'dsn; a8-70.smtp-out.amazonses.com' };
const complaint = { complainedRecipients: [{ emailAddress: 'anna@example.com' }], timestamp: '2026-02-12T18:00:00.000Z', feedbackId: 'f', complaintSubType: null, complaintFeedbackType: 'abuse' };
const delivery = { timestamp: '2026-02-12T17:42:52.000Z', recipients: ['anna@example.com'], processingTimeMillis: 546, smtpResponse: '250 ok', reportingMTA: 'a8-70.smtp-out.amazonses.com' };
const messages = [
  { notificationType: 'Bounce', mail, bounce }, { eventType: 'Bounce', mail, bounce }, { notificationType: 'Complaint', mail, complaint }, { eventType: 'Complaint', mail, complaint },
  { notificationType: 'Delivery', mail, delivery }, { eventType: 'Delivery', mail, delivery }, { eventType: 'Send', mail, send: {} },
].map((m) => JSON.stringify(m)).concat('Successfully validated SNS topic for Amazon SES event publishing.', '');

const plain = (m) => ({ Type: 'Notification', MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324', TopicArn: topic, Timestamp: '2026-02-12T17:43:00.123Z', SigningCertURL: certURL, UnsubscribeURL: 'https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe', ...m });
const control = (Type) => plain({ Type, Token: '2336412f37', Message: 'You have chosen to subscribe to the topic.', SubscribeURL: `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37` });

async function line(m) {
  const first = await new Promise((resolve) => { try { new SNSValidator().validate({ ...m }, (err) => resolve(!err)); } catch { resolve(false); } });
  const second = await new PayloadValidator().validate({ ...m }).then(() => true, () => false);
  console.log(JSON.stringify({ body: JSON.stringify(m), snsValidator: first, snsPayloadValidator: second }));
}
(async () => {
  for (const SignatureVersion of ['1', '2']) {
    for (const Message of messages) {
      for (const Subject of Message ? ['Amazon SES Email Event Notification'] : [undefined, null, '', 'Grüße\n😀']) await line(sign(plain({ SignatureVersion, Message, ...(Subject === undefined ? {} : { Subject }) })));
    }
    await line(sign({ ...control('SubscriptionConfirmation'), SignatureVersion }));
    await line(sign({ ...control('UnsubscribeConfirmation'), SignatureVersion }));
  }
  const right = sign(plain({ SignatureVersion: '2', Message: messages[0] }));
  await line({ ...right, Message: messages[4] });
  await line({ ...right, Subject: 'x' });
  await line({ ...right, Timestamp: '2026-02-12T17:43:00.124Z' });
  await line({ ...right, MessageId: '1' });
  await line({ ...right, TopicArn: topic + 'x' });
  await line({ ...right, SignatureVersion: '1' });
  await line({ ...right, SignatureVersion: '3' });
  await line({ ...right, Signature: '' });
  await line({ ...right, Type: 'SubscriptionConfirmation', Token: '', SubscribeURL: '' });
  for (const bad of ['http://sns.eu-west-1.amazonaws.com', 'https://sns.eu-west-1.amazonaws.com.example.com', 'https://example.com', 'https://sns.eu-west-1.amazonaws.com@example.com', 'https://s3.amazonaws.com/x', '']) {
    await line({ ...right, SigningCertURL: certURL.replace('https://sns.eu-west-1.amazonaws.com', bad) });
  }
  const subscription = sign({ ...control('SubscriptionConfirmation'), SignatureVersion: '2' });
  await line({ ...subscription, SubscribeURL: subscription.SubscribeURL.replace('eu-west-1', 'us-east-1') });
  await line({ ...subscription, Token: 'x' });
})();
