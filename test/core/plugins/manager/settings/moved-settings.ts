import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    joinMoved,
    Misplaced,
    openMoved,
    sealMoved,
    splitMoved,
    withPresent
} from '../../../../../core/src/plugins/manager/settings/moved-settings.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const owner = { name: 'one', package: '@acme/one' };
/** Shows what was sealed for whom. */
const keyring = {
    seal: (label: string, plain: string) => `${label}|${plain}`,
    open(label: string, sealed: string) {
        const [whose, plain] = sealed.split('|');
        if (whose !== label) {
            throw new Error('sealed for another owner');
        }
        return plain ?? '';
    }
};
const values = {
    plain: 1,
    token: 'T',
    hosts: { 'a.example.com': { password: 'P' }, 'b/c~d': { password: 'Q' } },
    list: [
        { name: 'ann', key: 'K' },
        { name: 'bob', key: '' }
    ],
    tokens: ['one', 'two']
};
const patterns = ['token', 'hosts.*.password', 'list.*.key', 'tokens.*'];

describe('splitMoved and joinMoved', () => {
    it('take every secret out by where it stood, and put it back there', () => {
        const moved = splitMoved(values, patterns);
        expect(moved.settings).to.equal({
            plain: 1,
            hosts: { 'a.example.com': {}, 'b/c~d': {} },
            list: [{ name: 'ann' }, { name: 'bob', key: '' }],
            tokens: [null, null]
        });
        expect(moved.secrets).to.equal({
            '/token': 'T',
            '/hosts/a.example.com/password': 'P',
            '/hosts/b~1c~0d/password': 'Q',
            '/list/0/key': 'K',
            '/tokens/0': 'one',
            '/tokens/1': 'two'
        });
        expect(joinMoved(moved)).to.equal(values);
        expect(joinMoved({ settings: {}, secrets: { token: 'by its bare name' } })).to.equal({
            token: 'by its bare name'
        });
    });

    it('refuse a secret without a place, and touch nothing but the settings', () => {
        for (const pointer of [
            '/no/where',
            '/list/7',
            '/list/-',
            '/list/length',
            '/plain/x',
            '/__proto__/polluted',
            '/hosts/constructor/prototype/x'
        ]) {
            expect(
                () =>
                    joinMoved({
                        settings: splitMoved(values, patterns).settings,
                        secrets: { [pointer]: 'x' }
                    }),
                pointer
            ).to.throw(Misplaced);
        }
        const own = joinMoved({ settings: {}, secrets: { '/__proto__': 'x' } });
        expect([Object.hasOwn(own, '__proto__'), ({} as Record<string, unknown>)['polluted']]).to.equal([
            true,
            undefined
        ]);
    });
});

describe('sealMoved and openMoved', () => {
    it('seal for one name and package', () => {
        const kept = sealMoved(splitMoved(values, patterns), owner, keyring);
        expect(kept['token']).to.equal({ '~sealed': 'plugin one @acme/one|T' });
        expect(openMoved(kept, owner, keyring)).to.equal(splitMoved(values, patterns));
        expect(() => openMoved(kept, { ...owner, package: '@evil/one' }, keyring)).to.throw(
            'sealed for another owner'
        );
    });
});

describe('withPresent', () => {
    const here = splitMoved(values, patterns);

    it('keeps the secrets of here where the settings have a place for them', () => {
        const { secrets } = withPresent(
            { settings: { hosts: { 'a.example.com': { port: 1 } } }, secrets: { '/token': 'new' } },
            here
        );
        expect(secrets).to.equal({ '/token': 'new', '/hosts/a.example.com/password': 'P' });
    });

    it('keeps none of a list that is another one', () => {
        expect(
            withPresent({ settings: { list: [{ name: 'eve' }], tokens: [null] }, secrets: {} }, here).secrets
        ).to.equal({ '/token': 'T' });
        expect(
            withPresent(
                { settings: { list: here.settings['list'], tokens: [null, null] }, secrets: {} },
                here
            ).secrets
        ).to.include({ '/list/0/key': 'K', '/tokens/1': 'two' });
        expect(withPresent({ settings: { token: '' }, secrets: {} }, here).secrets).to.equal({});
    });
});
