import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import {
    addressRange,
    Faults,
    isHeaderValue,
    siteName,
    upstreamAddress,
    webUrl
} from '../../../../../core/src/features/hosts/input/normalise.ts';

export const lab = Lab.script();
const { describe, it } = lab;

function judged<T>(work: (faults: Faults) => T): T | null {
    const faults = new Faults();
    const value = work(faults);
    return faults.list.length === 0 ? value : null;
}

describe('siteName', () => {
    for (const [typed, stored] of [
        ['Example.COM', 'example.com'],
        ['localhost', 'localhost'],
        ['*.Example.com', '*.example.com'],
        ['Bücher.example', 'xn--bcher-kva.example'],
        ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
        ['straße.de', 'xn--strae-oqa.de'],
        ['*.bücher.example', '*.xn--bcher-kva.example'],
        ['1.example', '1.example'],
        ['a-b.c', 'a-b.c'],
        ['例え.テスト', 'xn--r8jz45g.xn--zckzah']
    ] as const) {
        it(`stores ${typed} as ${stored}`, () => {
            expect(judged((faults) => siteName(typed, 'domain', faults))).to.equal(stored);
        });
    }

    for (const typed of [
        '',
        '.',
        'a.',
        '.a',
        'a..b',
        'a b.c',
        ' a.b',
        'a.b\n',
        'a/b.c',
        '../etc',
        'a.b:80',
        'http://a.b',
        '127.0.0.1',
        '127.1',
        '2130706433',
        '0x7f.1',
        'a.0x7f',
        '[::1]',
        '::1',
        '*',
        '*.',
        'a.*.b',
        '**.b',
        '*a.b',
        '*.*.b',
        'a_b.c',
        '-a.b',
        'a-.b',
        'ex%41mple.de',
        'ＥＸ.de',
        'a。b',
        'ab\u00adc.de',
        'xn--zzzz--.de',
        'xn--a.de',
        `${'a'.repeat(64)}.b`,
        `${'abcdefg.'.repeat(32)}com`,
        'a?.b',
        '[h]ost',
        'a\u0000.b',
        'a{env.X}.b'
    ]) {
        it(`refuses ${JSON.stringify(typed.slice(0, 40))}`, () => {
            expect(judged((faults) => siteName(typed, 'domain', faults))).to.be.null();
        });
    }

    it('only ever stores what it would store again', () => {
        fc.assert(
            fc.property(
                fc.oneof(
                    fc.string(),
                    fc.domain(),
                    fc.string({ unit: 'grapheme' }).map((text) => `${text}.test`)
                ),
                (text) => {
                    const stored = judged((faults) => siteName(text, 'domain', faults));
                    return (
                        stored === null ||
                        (/^(?:\*\.)?[a-z0-9.-]{1,253}$/.test(stored) &&
                            judged((faults) => siteName(stored, 'domain', faults)) === stored)
                    );
                }
            ),
            { numRuns: 3000 }
        );
    });
});

describe('upstreamAddress', () => {
    for (const [typed, stored] of [
        ['127.0.0.1:80', '127.0.0.1:80'],
        ['Backend:8080', 'backend:8080'],
        ['my_app:3000', 'my_app:3000'],
        ['http://10.0.0.1', 'http://10.0.0.1:80'],
        ['HTTPS://Example.com', 'https://example.com:443'],
        ['h2c://a:50051', 'h2c://a:50051'],
        ['[::1]:80', '[::1]:80'],
        ['[2001:DB8:0::1]:443', '[2001:db8::1]:443'],
        ['unix//run/app.sock', 'unix//run/app.sock'],
        ['https://[::1]', 'https://[::1]:443']
    ] as const) {
        it(`stores ${typed} as ${stored}`, () => {
            expect(judged((faults) => upstreamAddress(typed, 'upstream', faults))?.text).to.equal(stored);
        });
    }

    for (const typed of [
        '',
        'a',
        'a:',
        'a:0',
        'a:65536',
        'a:080',
        'a:80-90',
        'a:80/x',
        'http://a/',
        'http://u:p@a:80',
        'ftp://a:21',
        '::1:80',
        '[::1',
        '[::1]',
        '[fe80::1%eth0]:80',
        '127.1:80',
        '2130706433:80',
        '0x7f000001:80',
        '010.0.0.1:80',
        'unix/run/x',
        'unix:/run/x',
        'unix/',
        'unix//',
        'unix//run/../x',
        'unix//run//x',
        'unix//run/x|0777',
        'unix//run/{env.X}',
        `unix//${'a'.repeat(120)}`,
        'a b:80',
        'a:80\r\n',
        '*:80',
        'a.:80',
        ':80',
        'http://',
        '{env.X}:80'
    ]) {
        it(`refuses ${JSON.stringify(typed.slice(0, 40))}`, () => {
            expect(judged((faults) => upstreamAddress(typed, 'upstream', faults))).to.be.null();
        });
    }
});

describe('addressRange', () => {
    for (const [typed, stored] of [
        ['10.1.2.3', '10.1.2.3'],
        ['10.1.2.3/8', '10.0.0.0/8'],
        ['10.1.2.3/32', '10.1.2.3'],
        ['0.0.0.0/0', '0.0.0.0/0'],
        ['2001:DB8::1', '2001:db8::1'],
        ['2001:db8:ffff::/33', '2001:db8:8000::/33'],
        ['::/0', '::/0'],
        ['::ffff:10.0.0.1', '10.0.0.1'],
        ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
        ['1:2:3:4:5:6:7:8/127', '1:2:3:4:5:6:7:8/127']
    ] as const) {
        it(`stores ${typed} as ${stored}`, () => {
            expect(judged((faults) => addressRange(typed, 'access.allow.0', faults))).to.equal(stored);
        });
    }

    for (const typed of [
        '',
        '10.0.0',
        '10.0.0.0/33',
        '10.0.0.0/',
        '10.0.0.0/08',
        '10.0.0.0/-1',
        '::/129',
        'fe80::1%eth0',
        'a',
        '010.0.0.1',
        '10.0.0.1/8/8',
        'private_ranges'
    ]) {
        it(`refuses ${JSON.stringify(typed)}`, () => {
            expect(judged((faults) => addressRange(typed, 'access.allow.0', faults))).to.be.null();
        });
    }
});

describe('webUrl', () => {
    it('takes absolute http and https URLs only', () => {
        const taken = (text: string): boolean => judged((faults) => webUrl(text, 'to', faults)) !== null;
        expect(['https://a.b', 'http://a.b/c?d#e', 'https://[::1]:8443/'].filter(taken)).to.have.length(3);
        expect(
            [
                '',
                '/x',
                '//a',
                'javascript:alert(1)',
                'https:a',
                'https://u:p@a',
                'https://a b',
                'https://a\n',
                'http://',
                'https://a\\b',
                'ftp://a'
            ].filter(taken)
        ).to.equal([]);
    });
});

describe('isHeaderValue', () => {
    it('refuses line breaks, NUL and other control characters', () => {
        expect(['a', '', 'ü', 'a\tb'].every(isHeaderValue)).to.be.true();
        expect(['a\r', 'a\n', 'a\u0000', 'a\u001b', 'a\u007f'].some(isHeaderValue)).to.be.false();
    });
});
