const { SMTPServer } = require('smtp-server');
const { simpleParser } = require('mailparser');
const { authenticate } = require('mailauth');
const { dkimVerify } = require('mailauth/lib/dkim/verify');
const libmime = require('libmime');
const fs = require('fs');
let opened = 0, open = 0, most = 0, mails = 0;
const s = new SMTPServer({
  authOptional: true, disabledCommands: ['AUTH', 'STARTTLS'], hideSTARTTLS: true,
  onConnect(sess, cb) { opened++; open++; most = Math.max(most, open); cb(); },
  onClose() { open--; },
  onRcptTo(a, sess, cb) { a.address === 'gone@example.com' ? cb(Object.assign(new Error('5.1.1 unknown'), { responseCode: 550 })) : cb(); },
  onData(stream, sess, cb) {
    const parts = []; stream.on('data', d => parts.push(d));
    stream.on('end', async () => {
      mails++;
      try {
        const raw = Buffer.concat(parts);
        const m = await simpleParser(raw, { skipTextToHtml: true, skipHtmlToText: true, skipImageLinks: true });
        const name = m.headers.get('x-case');
        if (name) {
          fs.writeFileSync(`out/${name}.eml`, raw);
          const plain = a => a && a.value.map(v => ({ name: v.name, address: v.address }));
          const d = await dkimVerify(raw, { resolver: async (n, rr) => [[fs.readFileSync('record.txt', 'utf8').trim()]] });
          fs.writeFileSync(`out/${name}.json`, JSON.stringify({
            envelope: { from: sess.envelope.mailFrom.address, to: sess.envelope.rcptTo.map(r => r.address) },
            from: plain(m.from), to: plain(m.to), cc: plain(m.cc), bcc: plain(m.bcc), replyTo: plain(m.replyTo), subject: m.subject, messageId: m.messageId, date: m.date,
            text: m.text, html: m.html || undefined, note: m.headers.get('x-note') && libmime.decodeWords(m.headers.get('x-note')), list: m.headers.get('list'),
            attachments: m.attachments.map(a => ({ filename: a.filename, contentType: a.contentType, contentDisposition: a.contentDisposition, content: a.content.toString('base64') })),
            dkim: d.results.filter(r => r.status.result !== 'none').map(r => ({ result: r.status.result, domain: r.signingDomain, selector: r.selector, algo: r.algo, headers: r.signingHeaders && r.signingHeaders.keys })),
          }, null, 1) + '\n');
        }
        cb(null, 'Ok: queued as ' + mails);
      } catch (e) { console.log(e); cb(e); }
    });
  },
});
s.listen(2525, '127.0.0.1', () => console.log('listening'));
process.on('SIGUSR1', () => { console.log(JSON.stringify({ opened, most, open, mails })); });
