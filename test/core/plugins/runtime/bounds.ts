/** What crosses from a plugin in one piece is bounded, whatever it is: the whole panel waits while it is copied. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { contract, definePlugin } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../../../support/plugins/host.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

interface Giver {
    text(input: { readonly text: string }): Promise<{ readonly length: number }>;
    bytes(input: null): Promise<{ readonly bytes: Uint8Array }>;
    list(input: { readonly count: number }): Promise<readonly unknown[]>;
    series(input: null): AsyncIterable<{ readonly text: string }>;
}

const most = 16 * 1024 * 1024;
const long = (): string => 'x'.repeat(most);

describe('what a plugin hands over in one piece', () => {
    let rig: PluginRig;
    let partner: Giver;
    let isSaved = true;

    before(async () => {
        rig = await createPluginRig();
        await rig.run(
            definePlugin({
                setup(ctx) {
                    ctx.hooks.tap('host.beforeSave', ({ host, ...rest }) => ({
                        ...rest,
                        host: isSaved ? { ...host, notes: 'by the tap' } : { ...host, notes: long() }
                    }));
                    return {
                        text: async ({ text }: { text: string }) => ({ length: text.length }),
                        bytes: async () => ({ bytes: new Uint8Array(most) }),
                        list: async ({ count }: { count: number }) => Array<unknown>(count).fill({}),
                        async *series() {
                            yield { text: 'first' };
                            yield { text: long() };
                        }
                    };
                }
            }),
            { name: 'giver', capabilities: { taps: ['host.beforeSave'] } }
        );
        await rig.run(
            definePlugin({
                requires: { giver: contract<Giver>() },
                setup(ctx) {
                    partner = ctx.plugins.giver;
                }
            }),
            { name: 'taker', manifest: { requires: { giver: '*' } } }
        );
    });
    after(() => rig.close());

    const refused = async (work: Promise<unknown>): Promise<string> =>
        work.then(
            () => 'it went through',
            (error: Error) => error.message
        );

    it('may have 16 MiB, as input or answer of a contract call, or item of a series', async () => {
        expect(await partner.text({ text: 'x'.repeat(most - 100) })).to.equal({ length: most - 100 });
        expect(await partner.list({ count: 10_000 })).to.have.length(10_000);
        expect(await refused(partner.text({ text: long() }))).to.contain(
            'the input of giver.text has more than 16 MiB'
        );
        expect(await refused(partner.bytes(null))).to.not.equal('it went through');
        const seen: string[] = [];
        const series = (async () => {
            for await (const { text } of partner.series(null)) {
                seen.push(text);
            }
        })();
        expect(await refused(series)).to.not.equal('it went through');
        expect(seen).to.equal(['first']);
        const log = rig.http.lines.join('');
        expect(log).to.contain('16 MiB');
    });

    it('counts as a failure of the tap where it is the result of a hook, and the change goes on without it', async () => {
        const saved = { before: null, host: { domain: 'a.example' } } as const;
        const good = await rig.hooks.hostBeforeSave.run(saved);
        expect(good.host).to.include({ notes: 'by the tap' });
        isSaved = false;
        const without = await rig.hooks.hostBeforeSave.run(saved).then(
            ({ host }) => host,
            (error: Error) => error.message
        );
        expect(JSON.stringify(without).length).to.be.below(1_000);
        expect(rig.http.lines.join('')).to.contain(
            'the result of a tap of host.beforeSave has more than 16 MiB'
        );
    });
});
