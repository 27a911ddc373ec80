import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Refusals } from '../../../../core/src/features/audit/refusals.ts';
import type { AuditEntry } from '../../../../core/src/server/http/ports.ts';
import { entryOf } from '../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const nobody = { id: null, username: null, tokenId: null, plugin: null };
const stranger = (ip: string, code = 40100): AuditEntry =>
    entryOf({ actor: nobody, outcome: 'failure', code, status: 401, ip });

/** Refusals whose window ends only when it is told to. */
function collect(): {
    refusals: Refusals;
    written: { entry: AuditEntry; count: number }[];
    failures: unknown[];
    full: { value: boolean };
} {
    const written: { entry: AuditEntry; count: number }[] = [];
    const failures: unknown[] = [];
    const full = { value: false };
    const refusals = new Refusals({
        windowMs: 3_600_000,
        failed: (error) => void failures.push(error),
        async write(entries) {
            if (full.value) {
                throw new Error('disk full');
            }
            written.push(...entries);
        }
    });
    return { refusals, written, failures, full };
}

describe('Refusals', () => {
    it('writes the first at once and the rest as one count', async () => {
        const { refusals, written } = collect();
        for (let index = 0; index < 50; index += 1) {
            await refusals.add(stranger('203.0.113.9'));
        }
        expect(written.map(({ count }) => count)).to.equal([1]);
        await refusals.flush();
        expect(written.map(({ count }) => count)).to.equal([1, 49]);
        await refusals.flush();
        expect(written).to.have.length(2);
        await refusals.close();
    });

    it('keeps apart codes, actors and addresses, and takes a /64 for one caller', async () => {
        const { refusals, written } = collect();
        const actor = (id: number, tokenId: number | null = null): AuditEntry =>
            entryOf({ actor: { id, username: 'u', tokenId, plugin: null }, outcome: 'failure', code: 40300 });
        for (const entry of [
            stranger('203.0.113.9'),
            stranger('203.0.113.10'),
            stranger('203.0.113.9', 40101),
            stranger('2001:db8::1'),
            stranger('2001:db8::2'),
            actor(1),
            actor(2),
            actor(1, 5),
            actor(1)
        ]) {
            await refusals.add(entry);
        }
        expect(written).to.have.length(7);
        await refusals.close();
        expect(written.slice(7).map(({ entry, count }) => [entry.ip, count])).to.equal([
            ['2001:db8::1', 1],
            ['203.0.113.7', 1]
        ]);
    });

    it('lets strangers cause 600 entries in a window, the last of which counts the rest', async () => {
        const { refusals, written } = collect();
        for (let index = 0; index < 20_000; index += 1) {
            await refusals.add(stranger(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`));
            await refusals.add(stranger('10.0.0.1'));
        }
        await refusals.flush();
        expect(written).to.have.length(600);
        expect(written.reduce((sum, { count }) => sum + count, 0)).to.equal(40_000);
        expect(written.at(-1)?.entry).to.include({ action: 'refuse', ip: null, userAgent: null });
        await refusals.add(stranger('203.0.113.9'));
        expect(written).to.have.length(601);
        await refusals.close();
    });

    it('is not kept from recording known actors by a flood of strangers', async () => {
        const { refusals, written } = collect();
        for (let index = 0; index < 2_000; index += 1) {
            await refusals.add(stranger(`10.0.${index >> 8}.${index & 255}`));
        }
        await refusals.add(entryOf({ outcome: 'failure', code: 40300 }));
        expect(written.at(-1)?.entry).to.include({ code: 40300 });
        await refusals.close();
    });

    it('keeps its counts when they cannot be written', async () => {
        const { refusals, written, failures, full } = collect();
        for (let index = 0; index < 10; index += 1) {
            await refusals.add(stranger('203.0.113.9'));
        }
        full.value = true;
        await refusals.flush();
        expect(failures).to.have.length(1);
        full.value = false;
        await refusals.close();
        expect(written.map(({ count }) => count)).to.equal([1, 9]);
    });
});
