import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import {
    isAllowedVariable,
    readCodes,
    readType
} from '../../../../../core/src/features/dns-providers/lego/help.ts';
import {
    classes,
    decodeMessage,
    DnsFormatError,
    encodeName,
    encodeQuery,
    encodeText,
    encodeUpdate,
    recordTypes,
    textOf
} from '../../../../../core/src/features/dns-providers/rfc2136/dns-message.ts';
import {
    signMessage,
    type TsigKey,
    verifyReply
} from '../../../../../core/src/features/dns-providers/rfc2136/tsig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('decodeMessage', () => {
    it('reads what was written, and refuses everything else without an accident', () => {
        const query = decodeMessage(encodeQuery(7, 'Some.Example.test.', 'TXT', true));
        expect([query.id, query.isReply, query.questions]).to.equal([
            7,
            false,
            [{ name: 'some.example.test', type: 16, class: 1 }]
        ]);
        const update = decodeMessage(
            encodeUpdate(8, 'example.test', [
                {
                    name: 'a.example.test',
                    type: recordTypes.TXT,
                    class: classes.none,
                    ttl: 0,
                    data: encodeText('x'.repeat(600))
                }
            ])
        );
        expect(update.authority.map((record) => [record.name, record.class, textOf(record)])).to.equal([
            ['a.example.test', 254, 'x'.repeat(600)]
        ]);
        fc.assert(
            fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
                try {
                    decodeMessage(Buffer.from(bytes));
                } catch (error) {
                    return error instanceof DnsFormatError;
                }
                return true;
            })
        );
    });

    it('follows no circle of pointers, and takes no name that is too long', () => {
        const head = Buffer.from([0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for (const name of [
            [0xc0, 12],
            [1, 97, 0xc0, 12],
            [0xc0, 14, 0xc0, 12],
            [0x80, 0]
        ]) {
            expect(() => decodeMessage(Buffer.concat([head, Buffer.from([...name, 0, 1, 0, 1])]))).to.throw(
                DnsFormatError
            );
        }
        for (const name of ['a..b', `${'a'.repeat(64)}.b`, 'a b', `${'a.'.repeat(130)}b`, 'ä.test']) {
            expect(() => encodeName(name), name).to.throw(DnsFormatError);
        }
    });
});

describe('verifyReply', () => {
    it('believes only a sender who has the key, and for this request alone', () => {
        const key: TsigKey = {
            name: 'Panel-Key',
            secret: Buffer.from('a secret of thirty-two characters'),
            algorithm: 'hmac-sha256'
        };
        const request = signMessage(encodeQuery(9, 'a.test', 'SOA', false), key, 1_000);
        const reply = signMessage(encodeQuery(9, 'a.test', 'SOA', false), key, 1_000);
        // Signed as a request is, not as the answer to one.
        expect(() => verifyReply(decodeMessage(reply.bytes), key, request.mac, 1_000)).to.throw(
            'the signature of the reply is wrong'
        );
        expect(() =>
            verifyReply(decodeMessage(encodeQuery(9, 'a.test', 'SOA', false)), key, request.mac, 1_000)
        ).to.throw('the reply is not signed');
        expect(() =>
            verifyReply(decodeMessage(reply.bytes), { ...key, name: 'other' }, request.mac, 1_000)
        ).to.throw('the reply is signed by another key');
        expect(() =>
            verifyReply(decodeMessage(reply.bytes), { ...key, algorithm: 'hmac-sha512' }, request.mac, 1_000)
        ).to.throw('the reply is signed by another key');
    });
});

describe('what lego says of its types', () => {
    it('is read with whatever is in it, and nothing that would steer the process gets through', () => {
        expect(
            readCodes('x\nAll DNS codes:\n  exec, hetzner, manual, rfc2136, acme-dns, a_b, ovh\n\nMore')
        ).to.equal(['hetzner', 'ovh']);
        expect(readCodes('nothing of the kind')).to.equal([]);
        expect(
            readType('x', 'Configuration for X.\n\nCredentials:\n  - "LD_PRELOAD": a\n  - "PATH": b\n')
        ).to.be.null();
        const type = readType(
            'x',
            'Configuration for A: B.\nCredentials:\n  - "X_TOKEN":\tThe token\n\nAdditional Configuration:\n  - "X_TTL":  seconds\n  - "X_KEY_FILE": no\n'
        );
        expect(type).to.equal({
            type: 'x',
            label: 'A: B',
            builtIn: false,
            fields: [
                { name: 'X_TOKEN', label: 'X token', secret: true, required: true, help: 'The token' },
                { name: 'X_TTL', label: 'X TTL', secret: false, required: false, help: 'seconds' }
            ]
        });
        for (const name of [
            'PATH',
            'LD_PRELOAD',
            'LD_LIBRARY_PATH',
            'HOME',
            'GODEBUG',
            'HTTPS_PROXY',
            'LEGO_PATH',
            'EXEC_PATH',
            'SSL_CERT_FILE',
            'GCE_SERVICE_ACCOUNT_FILE',
            'a',
            'A=B',
            'A B',
            ''
        ]) {
            expect(isAllowedVariable(name), name).to.be.false();
        }
    });
});
