import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readManifest } from '../../registry/src/index.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const good = {
    name: '@acme/portico-plugin-hello',
    version: '1.2.0',
    description: 'Says hello',
    engines: { node: '>=24' },
    portico: {
        name: 'hello',
        sdk: '^1.0.0',
        requires: { container: '^1.0.0' },
        permissions: { run: { title: 'Greet everyone', roles: ['operator'] }, write: 'Change greetings' },
        capabilities: { exec: ['git'], hosts: 'own', api: { read: ['*'] } }
    }
};
const faultOf = (change: (copy: typeof good & { portico: Record<string, unknown> }) => void): string[] => {
    const copy = structuredClone(good) as typeof good & { portico: Record<string, unknown> };
    change(copy);
    const result = readManifest(copy, new Set(['hosts', 'auth']));
    return 'fault' in result ? [result.fault.code, result.fault.message] : ['accepted', ''];
};

describe('readManifest', () => {
    it('reads a manifest, with the description as its title', () => {
        const result = readManifest(good, new Set());
        expect('plugin' in result && result.plugin).to.include({
            package: '@acme/portico-plugin-hello',
            version: '1.2.0',
            title: 'Says hello',
            node: '>=24'
        });
    });

    it('names what is wrong, once for each way to be wrong', () => {
        expect(faultOf((copy) => Reflect.deleteProperty(copy, 'portico'))[0]).to.equal('MANIFEST_MISSING');
        expect(faultOf((copy) => Reflect.deleteProperty(copy, 'version'))[0]).to.equal('PACKAGE_INVALID');
        expect(faultOf(({ portico }) => Reflect.deleteProperty(portico, 'sdk'))[0]).to.equal(
            'SDK_RANGE_MISSING'
        );
        expect(faultOf(({ portico }) => Object.assign(portico, { sdk: 'whatever' }))[0]).to.equal(
            'SDK_RANGE_MISSING'
        );
        expect(faultOf(({ portico }) => Object.assign(portico, { colour: 'red' }))).to.equal([
            'MANIFEST_UNKNOWN_KEY',
            'portico.colour is not allowed'
        ]);
        expect(faultOf(({ portico }) => Object.assign(portico, { name: 'Hello' }))[0]).to.equal(
            'MANIFEST_INVALID'
        );
        expect(
            String(
                faultOf(({ portico }) => Object.assign(portico, { requires: { other: 'not a range' } }))[1]
            )
        ).to.startWith('portico.requires.other');
        expect(faultOf(({ portico }) => Object.assign(portico, { requires: { hello: '^1' } }))[0]).to.equal(
            'MANIFEST_INVALID'
        );
        expect(
            faultOf(({ portico }) =>
                Object.assign(portico, { permissions: { read: { title: 'x', roles: [] } } })
            )[0]
        ).to.equal('MANIFEST_INVALID');
        expect(
            faultOf(({ portico }) =>
                Object.assign(portico, { permissions: { run: { title: 'x', roles: ['admin'] } } })
            )[0]
        ).to.equal('MANIFEST_INVALID');
        expect(faultOf(({ portico }) => Object.assign(portico, { name: 'hosts' }))).to.equal([
            'NAME_RESERVED',
            'The name hosts belongs to the core'
        ]);
        const pages = [
            { id: 'main', title: 'Main', access: 'read', entry: 'assets/main.js', uses: ['hosts.list'] }
        ];
        expect(
            faultOf(({ portico }) => Object.assign(portico, { capabilities: {}, contributes: { pages } }))
        ).to.equal([
            'MANIFEST_INVALID',
            'portico.contributes.pages uses hosts.list, which is not in portico.capabilities.api: an admin has to grant it'
        ]);
        const capabilities = { api: { read: ['hosts.list'] } };
        expect(
            faultOf(({ portico }) => Object.assign(portico, { capabilities, contributes: { pages } }))[0]
        ).to.equal('accepted');
        for (const title of ['Hello \u202e olleH', 'Hello\nroot', 'Hello \u001b[31m', '\u2066Hello']) {
            expect([
                faultOf(({ portico }) => Object.assign(portico, { title }))[0],
                faultOf(({ portico }) => Object.assign(portico, { capabilities: { public: [title] } }))[0]
            ]).to.equal(['MANIFEST_INVALID', 'MANIFEST_INVALID']);
        }
        for (const odd of [null, 1, 'x', [], { name: 'x', version: '1.0.0', portico: [] }]) {
            expect('fault' in readManifest(odd, new Set())).to.be.true();
        }
    });

    it('looks at the SDK range before the keys of a manifest that may be newer than itself', () => {
        expect(faultOf(({ portico }) => Object.assign(portico, { sdk: 'x y z', future: true }))[0]).to.equal(
            'SDK_RANGE_MISSING'
        );
    });
});
