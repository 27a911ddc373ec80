import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { hostsOfCaddy } from '../../../../../core/src/features/import-export/caddy/caddy.ts';
import { digestOf } from '../../../../../core/src/features/import-export/document/digest.ts';
import { readDocument } from '../../../../../core/src/features/import-export/document/document.ts';
import { open, seal, Unsealed } from '../../../../../core/src/features/import-export/document/vault.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const known = new Set(['hosts']);
const plain = {
    format: 'portico-export',
    formatVersion: 1,
    createdAt: '2026-01-01T00:00:00.000Z',
    sections: { hosts: [] }
};
const reasonOf = (work: () => unknown): readonly [number, unknown] => {
    try {
        work();
        return [0, null];
    } catch (error) {
        const { code, data } = error as { code: number; data: unknown };
        return [code, data];
    }
};

describe('readDocument', () => {
    it('brings an older version up step by step, and refuses an unknown one', () => {
        const older = new Map([
            [0, (document: object) => ({ ...document, formatVersion: 1, sections: { hosts: ['moved'] } })]
        ]);
        expect(readDocument({ ...plain, formatVersion: 0 }, known, older).sections).to.equal({
            hosts: ['moved']
        });
        expect(reasonOf(() => readDocument({ ...plain, formatVersion: 0 }, known))[0]).to.equal(40000);
        for (const formatVersion of [2, 1.5, '1', null, Number.NaN]) {
            expect(reasonOf(() => readDocument({ ...plain, formatVersion }, known))[0]).to.equal(40000);
        }
    });

    it('refuses what has more or less than a document', () => {
        for (const changed of [
            { ...plain, more: 1 },
            { ...plain, sections: undefined },
            { ...plain, createdAt: 'yesterday' },
            { ...plain, sections: { strange: [] } }
        ]) {
            expect(reasonOf(() => readDocument(changed, known))[0]).to.equal(40001);
        }
    });
});

describe('seal and open', () => {
    it('give back what was sealed, to the right passphrase and the same document alone', async () => {
        const secrets = new Map([['users', new Map([['ann', 'a hash']])]]);
        const sealed = await seal(secrets, 'pässphrase', plain);
        expect(await open(sealed, 'pa\u0308ssphrase', { ...plain })).to.equal(secrets);
        const why = async (work: Promise<unknown>): Promise<string> =>
            work.then(
                () => 'opened',
                (error: unknown) => (error instanceof Unsealed ? error.why : String(error))
            );
        expect(await why(open(sealed, 'passphrase', plain))).to.equal('passphrase');
        expect(
            await why(open(sealed, 'pässphrase', { ...plain, createdAt: '2027-01-01T00:00:00.000Z' }))
        ).to.equal('damaged');
        expect(
            await why(open({ ...sealed, kdf: { ...sealed.kdf, passes: 2 } }, 'pässphrase', plain))
        ).to.equal('passphrase');
        expect(await why(open({ ...sealed, box: sealed.box.slice(0, 38) }, 'pässphrase', plain))).to.equal(
            'damaged'
        );
    });
});

describe('digestOf', () => {
    it('is one for one value, whatever the order of its keys', () => {
        expect(digestOf({ b: [1, { d: null, c: 'x' }], a: true })).to.equal(
            digestOf({ a: true, b: [1, { c: 'x', d: null }] })
        );
        expect(digestOf({ a: ['1', '2'] })).to.not.equal(digestOf({ a: ['1,2'] }));
        expect(digestOf({ a: {}, b: 1 })).to.not.equal(digestOf({ a: { b: 1 } }));
    });
});

describe('hostsOfCaddy', () => {
    it('looks at any JSON without falling over it', () => {
        for (const config of [
            {},
            { apps: null },
            { apps: { http: { servers: [] } } },
            {
                apps: {
                    http: {
                        servers: {
                            a: {
                                listen: [1],
                                routes: [
                                    null,
                                    { match: [{ host: [null, 7, '1.2.3.4', 'good.test'] }], handle: 'x' }
                                ]
                            }
                        }
                    }
                }
            }
        ]) {
            expect(hostsOfCaddy(config).hosts.length).to.be.at.most(1);
        }
    });

    it('keeps a site whole where a part of it cannot be modelled', () => {
        const handle = [
            { handler: 'reverse_proxy', upstreams: [{ dial: '10.0.0.1:80' }], flush_interval: -1 }
        ];
        const { hosts, hostNotes } = hostsOfCaddy({
            apps: {
                http: {
                    servers: {
                        a: {
                            listen: [':443'],
                            routes: [
                                { match: [{ host: ['Odd.test'] }], handle },
                                { match: [{ host: ['odd.test'], path: ['/x'] }], handle }
                            ]
                        }
                    }
                }
            }
        });
        expect(hosts).to.equal([
            {
                domain: 'odd.test',
                aliases: [],
                type: 'proxy',
                upstream: '10.0.0.1:80',
                advanced: [
                    { handler: 'subroute', routes: [{ handle }, { handle, match: [{ path: ['/x'] }] }] }
                ],
                ssl: true,
                sslMode: 'auto'
            }
        ]);
        expect(hostNotes).to.equal([
            {
                name: 'odd.test',
                message:
                    'becomes advanced, as it stands: its handler reverse_proxy has the setting flush_interval'
            }
        ]);
    });
});
