import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type PluginPackage, resolve } from '../../../registry/src/index.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const host = { sdk: '1.4.0', node: '24.21.0' };
const plugin = (
    name: string,
    more: Partial<PluginPackage['manifest']> & { version?: string; node?: string } = {}
): PluginPackage => {
    const { version = '1.0.0', node = null, ...manifest } = more;
    return {
        package: `@acme/${name}`,
        version,
        title: name,
        node,
        manifest: { name, sdk: '^1.0.0', ...manifest }
    };
};
const run = (...plugins: PluginPackage[]): { order: string[]; unresolved: Record<string, string> } => {
    const { order, unresolved } = resolve(plugins, host);
    return {
        order: order.map((each) => each.manifest.name),
        unresolved: Object.fromEntries(
            unresolved.map(({ name, code, message }) => [name, `${code}: ${message}`])
        )
    };
};

describe('resolve', () => {
    it('puts each plugin after what it requires and what it makes use of', () => {
        expect(
            run(
                plugin('a', { requires: { c: '^1' } }),
                plugin('b', { optional: { a: '^1', nobody: '^1' } }),
                plugin('c'),
                plugin('d', { optional: { c: '^9' } })
            ).order
        ).to.equal(['c', 'a', 'b', 'd']);
    });

    it('explains each conflict in one sentence, and a dependant with it', () => {
        const { order, unresolved } = run(
            plugin('old', { sdk: '^0.9.0' }),
            plugin('new', { node: '>=26' }),
            plugin('alone', { requires: { nobody: '^1' } }),
            plugin('picky', { requires: { fine: '^2' } }),
            plugin('after', { requires: { old: '*' } }),
            plugin('fine')
        );
        expect(order).to.equal(['fine']);
        expect(unresolved).to.equal({
            old: 'SDK_RANGE: old 1.0.0 works with @portico/sdk ^0.9.0, but this panel has 1.4.0',
            new: 'NODE_RANGE: new 1.0.0 works with Node >=26, but this panel runs on 24.21.0',
            alone: 'REQUIREMENT_MISSING: alone requires nobody ^1, which is not there',
            picky: 'REQUIREMENT_RANGE: picky requires fine ^2, but 1.0.0 is there',
            after: 'REQUIREMENT_FAILED: after requires old *, which cannot start: old 1.0.0 works with @portico/sdk ^0.9.0, but this panel has 1.4.0'
        });
    });

    it('prints a circle as a path, and lets the others start', () => {
        const { order, unresolved } = run(
            plugin('a', { requires: { b: '*' } }),
            plugin('b', { requires: { c: '*' } }),
            plugin('c', { requires: { a: '*' } }),
            plugin('d'),
            plugin('e', { optional: { f: '*' } }),
            plugin('f', { optional: { e: '*' } })
        );
        expect(order).to.equal(['d', 'f', 'e']);
        expect(unresolved['c']).to.equal('CYCLE: a → b → c → a require each other in a circle');
        expect(Object.keys(unresolved).sort()).to.equal(['a', 'b', 'c']);
    });

    it('takes the first of two with one name, and says which was passed over', () => {
        const { order, unresolved } = run(plugin('a', { version: '2.0.0' }), plugin('a'));
        expect(order).to.equal(['a']);
        expect(unresolved['a']).to.equal(
            'NAME_TAKEN: @acme/a 1.0.0 is not used: @acme/a 2.0.0 has the name a'
        );
    });
});
