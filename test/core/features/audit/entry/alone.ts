import { setImmediate as turn } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { AloneEntries } from '../../../../../core/src/features/audit/entry/alone.ts';
import type { AuditEntry } from '../../../../../core/src/server/http/ports.ts';

export const lab = Lab.script();
const { describe, it } = lab;

// Only the action is looked at.
const entry = (action: string): AuditEntry => ({ action }) as AuditEntry;
const gather = (): { readonly entries: AloneEntries; readonly written: string[] } => {
    const written: string[] = [];
    const entries = new AloneEntries(async (all) => {
        const actions = all.map(({ action }) => action);
        if (actions.includes('bad')) {
            throw new Error(actions.join(' '));
        }
        written.push(actions.join(' '));
    });
    return { entries, written };
};

describe('AloneEntries', () => {
    it('writes those of one turn together, in order, and later ones by themselves', async () => {
        const { entries, written } = gather();
        await Promise.all(['a', 'b', 'c'].map((action) => entries.add(entry(action))));
        await entries.add(entry('d'));
        expect(written).to.equal(['a b c', 'd']);
    });

    it('gathers what comes while others are written', async () => {
        const written: number[] = [];
        const { promise: over, resolve: finish } = Promise.withResolvers<void>();
        const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
        const entries = new AloneEntries(async (all) => {
            written.push(all.length);
            begin();
            await over;
        });
        const added = [entries.add(entry('a'))];
        await begun;
        added.push(entries.add(entry('b')));
        await turn();
        added.push(entries.add(entry('c')));
        await turn();
        expect(written).to.equal([1]);
        finish();
        await Promise.all(added);
        expect(written).to.equal([1, 2]);
    });

    it('writes each alone where one of them cannot be written', async () => {
        const { entries, written } = gather();
        const results = await Promise.allSettled(
            ['a', 'bad', 'b'].map((action) => entries.add(entry(action)))
        );
        expect(results.map(({ status }) => status)).to.equal(['fulfilled', 'rejected', 'fulfilled']);
        expect(written).to.equal(['a', 'b']);
    });

    it('has handed over what was added when it is closed', async () => {
        const { entries, written } = gather();
        const added = entries.add(entry('a'));
        await entries.close();
        expect(written).to.equal(['a']);
        await added;
    });
});
