/** What leaves the panel, and what does not. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Redactor } from '../../../../extensions/ai/src/redaction/redaction.ts';
import { createAiRig, dataOf, textOf } from '../rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const standard = (text: string, redactPatterns: readonly string[] = []): string =>
    new Redactor({ redaction: 'standard', redactPatterns }).text(text);

describe('Redactor', () => {
    const secrets: readonly (readonly [string, string])[] = [
        ['password = "hunter2 and more"', 'hunter2'],
        ["DB_PASSWORD='s3cr3t!'", 's3cr3t'],
        ['MYSQL_ROOT_PASSWORD: tiger99', 'tiger99'],
        ['{"apiKey":"abc123def456"}', 'abc123def456'],
        ['{"refresh_token": "zzz-yyy-xxx"}', 'zzz-yyy-xxx'],
        ['api_key => qwertz', 'qwertz'],
        ['postgres://app:pa55word@db.example:5432/app', 'pa55word'],
        ['Authorization: Bearer abcdefgh.ijkl', 'abcdefgh'],
        ['Authorization: Basic dXNlcjpwYXNz', 'dXNlcjpwYXNz'],
        ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4', 'eyJzdWIi'],
        ['key sk-proj-abcdEFGH1234567890abcd here', 'abcdEFGH'],
        ['ghp_0123456789abcdef0123456789abcdef0123', '0123456789abcdef'],
        ['AKIAIOSFODNN7EXAMPLE', 'AKIAIOSFODNN7'],
        ['$2b$12$KIXQJZq3mC6Xv8u7w5y1UeuTt3QyqO7rN4n6YbA5lq0b0l2v9T3eK', 'KIXQJZq3mC6'],
        ['-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----', 'MIIEvQ'],
        ['-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBg\n(cut)', 'MIIEvQ'],
        ['mysql --password=tiger99 -e x', 'tiger99'],
        ["ALTER USER x IDENTIFIED BY 'tiger99'", 'tiger99']
    ];
    for (const [text, secret] of secrets) {
        it(`removes the secret of ${JSON.stringify(text).slice(0, 50)}`, () => {
            expect(standard(text)).to.not.include(secret).and.to.include('[removed:');
            expect(standard(standard(text))).to.equal(standard(text));
        });
    }

    it('leaves what is no secret', () => {
        for (const text of [
            'The password is wrong for user app',
            'Restarted nginx.service after 3 s, status=1/FAILURE',
            'GET /api/hosts 200 12ms',
            'commit 0f4d0a6a3a415a1a4959dddc367edaa29fd60a91',
            '{"version":3,"enabled":true,"password":null}'
        ]) {
            expect(standard(text)).to.equal(text);
        }
    });

    it('takes patterns of the admin, empty matches too', () => {
        expect(standard('customer 4711 of ACME', ['customer \\d+', 'x*'])).to.equal(
            '[removed:pattern] of ACME'
        );
    });

    it('removes whole values by the names of their fields', () => {
        const redactor = new Redactor({ redaction: 'standard', redactPatterns: [] });
        expect(
            redactor.value({ password: 'a b', nested: [{ clientSecret: 'x', name: 'n', n: 1 }], secret: '' })
        ).to.equal({
            password: '[removed:password]',
            nested: [{ clientSecret: '[removed:password]', name: 'n', n: 1 }],
            secret: ''
        });
    });

    it('puts placeholders in the place of names and addresses, and puts them back', () => {
        const redactor = new Redactor({ redaction: 'strict', redactPatterns: [] });
        const text =
            'shop.acme.com -> 10.1.2.3:8080, [2001:db8::1]:443, admin@acme.com, https://shop.acme.com/x in /etc/nginx/nginx.conf at 12:30:45, version 1.2.3';
        const hidden = redactor.text(text);
        for (const name of ['acme', '10.1.2.3', '2001:db8::1']) {
            expect(hidden).to.not.include(name);
        }
        expect(hidden).to.include([
            'host-1.placeholder.invalid -> address-1.placeholder.invalid:8080',
            'https://host-1.placeholder.invalid/x',
            '/etc/nginx/nginx.conf at 12:30:45, version 1.2.3'
        ]);
        expect(redactor.restore(hidden)).to.equal(text);
        expect(redactor.text(hidden)).to.equal(hidden);
        const again = new Redactor({ redaction: 'strict', redactPatterns: [] }, redactor.placeholders);
        expect(again.text('10.1.2.3 and 10.9.9.9')).to.equal(
            'address-1.placeholder.invalid and address-3.placeholder.invalid'
        );
        expect(
            again.restoreValue({ a: ['host-1.placeholder.invalid', 'host-77.placeholder.invalid'] })
        ).to.equal({
            a: ['shop.acme.com', 'host-77.placeholder.invalid']
        });
    });

    it('knows hosts without a dot by where they stand, and the machine by its name', () => {
        const redactor = new Redactor({ redaction: 'strict', redactPatterns: [] }, {}, ['panel-7']);
        const text =
            'postgres://app@db1:5432/shop, http://cache/x, queue:6379 on panel-7, localhost:8080, port:8080, main.ts:1234, at 12:30, panel-70';
        const hidden = redactor.text(text);
        expect(hidden).to.equal(
            'postgres://app@host-1.placeholder.invalid:5432/shop, http://host-2.placeholder.invalid/x, host-3.placeholder.invalid:6379 on host-4.placeholder.invalid, localhost:8080, port:8080, main.ts:1234, at 12:30, panel-70'
        );
        expect(redactor.restore(hidden)).to.equal(text);
        expect(redactor.text(hidden)).to.equal(hidden);
    });

    it('puts placeholders back that come in pieces', () => {
        const redactor = new Redactor({ redaction: 'strict', redactPatterns: [] });
        redactor.text('shop.acme.com');
        const restorer = redactor.restorer();
        const said = ['Ask ho', 'st-1.place', 'holder.inva', 'lid, then', ' wait.'].map((each) =>
            restorer.push(each)
        );
        expect(said.join('') + restorer.end()).to.equal('Ask shop.acme.com, then wait.');
        expect(said[0]).to.equal('Ask ');
    });

    it('takes time that grows with the text, whatever the text is', () => {
        for (const nasty of [
            'a'.repeat(200_000),
            'password'.repeat(25_000),
            '1.'.repeat(100_000),
            'a@'.repeat(100_000),
            ':'.repeat(200_000),
            'a.'.repeat(100_000),
            '-----BEGIN A-----\n'.repeat(10_000),
            'x://'.repeat(50_000),
            '"'.repeat(200_000),
            `${'Q'.repeat(64)}\n`.repeat(3_000)
        ]) {
            const began = performance.now();
            new Redactor({ redaction: 'strict', redactPatterns: [] }).text(nasty);
            expect([nasty.slice(0, 10), performance.now() - began < 20_000]).to.equal([
                nasty.slice(0, 10),
                true
            ]);
        }
    });
});

describe('what a model sees', { timeout: 60_000 }, () => {
    it('has no secrets, of questions, attachments and answers before', async () => {
        const rig = await createAiRig();
        const id = await rig.conversation();
        rig.model.say({ text: 'Your password: hunter2 is weak.' }, { text: 'Done.' });
        await rig.say(id, 'Is password=hunter2 good?', 'olga', {
            attachments: [{ name: 'env', text: 'API_KEY=abcdef0123456789' }]
        });
        await rig.say(id, 'And now?');
        const sent = JSON.stringify(rig.model.questions.map(({ body }) => body));
        expect(sent).to.not.include('hunter2');
        expect(sent).to.not.include('abcdef0123456789');
        expect(sent).to.include('[removed:password]');
        await rig.close();
    });

    it('has placeholders with strict, over a conversation, and the user reads the names', async () => {
        const rig = await createAiRig({ settings: { redaction: 'strict' } });
        const id = await rig.conversation();
        rig.model.say(
            { text: 'host-1.placeholder.invalid does not answer.' },
            { text: 'Look at host-1.placeholder.invalid.' }
        );
        expect(textOf(await rig.say(id, 'What of shop.acme.com?'))).to.equal(
            'shop.acme.com does not answer.'
        );
        const events = await rig.say(id, 'And shop.acme.com at 10.1.2.3?');
        expect(textOf(events)).to.equal('Look at shop.acme.com.');
        const sent = JSON.stringify(rig.model.questions.map(({ body }) => body));
        expect(sent).to.not.include('acme').and.to.not.include('10.1.2.3');
        expect(dataOf(events, 'end').reason).to.equal('stop');
        await rig.close();
    });

    it('is what POST /redact shows', async () => {
        const rig = await createAiRig({
            settings: { redaction: 'strict', redactPatterns: ['Projekt \\w+'] }
        });
        const { data } = await rig.ask('POST', '/redact', {
            text: 'Projekt Adler: password=x1 at 10.1.2.3 and 10.1.2.3'
        });
        expect(data.text).to.equal(
            '[removed:pattern]: password=[removed:password] at address-1.placeholder.invalid and address-1.placeholder.invalid'
        );
        expect(data.found).to.equal([
            { kind: 'pattern', count: 1 },
            { kind: 'password', count: 1 },
            { kind: 'address', count: 2 }
        ]);
        expect(rig.model.asked).to.equal([]);
        await rig.close();
    });
});
