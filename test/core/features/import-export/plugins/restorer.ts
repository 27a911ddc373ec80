import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    importExportEntities,
    importExportMigrations
} from '../../../../../core/src/features/import-export/entities.ts';
import { Restorer } from '../../../../../core/src/features/import-export/plugins/restorer.ts';
import type { PluginHooks } from '../../../../../core/src/features/import-export/ports.ts';
import type { AuditEntry } from '../../../../../core/src/server/http/ports.ts';
import { handClock, openStore, type Store } from '../../../../support/core/store.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const items = [{ name: 'list', data: [1, { secret: 'in the clear' }] }];
const given = { package: '@acme/one', version: '2.0.0', items };
const importer = { actor: { id: 1, username: 'admin', tokenId: null, plugin: null }, requestId: 'r-1' };
const { signal } = new AbortController();

let store: Store;
let entries: AuditEntry[];
let notified: string[];
let runs: { package: string; generation: object } | null;
/** What its tap does. */
let tap: (payload: Parameters<PluginHooks['restore']>[1], signal: AbortSignal) => Promise<unknown>;
let asked: unknown[];

function restorerOf(): Restorer {
    const hooks: PluginHooks = {
        givers: () => [],
        async *give() {},
        async *restore(plugin, payload, given) {
            asked.push([plugin, payload]);
            const result = await tap(payload, given);
            yield result instanceof Error
                ? { plugin, version: '2.1.0', ok: false, reason: 'TAP_FAILED', message: result.message }
                : { plugin, version: '2.1.0', ok: true, result };
        }
    };
    const record = (entry: AuditEntry): Promise<void> => {
        entries.push(entry);
        return Promise.resolve();
    };
    return new Restorer({
        db: store.db,
        clock: handClock(),
        log: store.log,
        keyring: store.keyring,
        hooks,
        running: () => runs,
        notify: ({ event }) => void notified.push(event),
        recorder: { record: (_tx, entry) => record(entry), recordAlone: record, refused: record }
    });
}

const keep = (restorer: Restorer, more: object = {}): Promise<void> =>
    store.db.write((tx) => restorer.keep(tx, 'one', { ...given, ...more }, 'replace', importer));

beforeEach(async () => {
    store = await openStore({ entities: importExportEntities, migrations: importExportMigrations });
    [entries, notified, asked] = [[], [], []];
    runs = { package: '@acme/one', generation: {} };
    tap = async () => [{ item: 'list', ok: true }];
});
afterEach(() => store.remove());

describe('Restorer', () => {
    it('gives a plugin back what waits for it, once', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        expect(
            JSON.stringify(await store.db.read((em) => em.execute('select * from plugin_restores')))
        ).to.not.contain('clear');
        expect(restorer.waiting().get('one')).to.equal(given);
        expect(
            await Promise.all([restorer.restore('one', signal), restorer.restore('one', signal)])
        ).to.equal([{ state: 'restored', notes: [] }, null]);
        expect(asked).to.equal([['one', { version: '2.0.0', mode: 'replace', items }]]);
        expect(
            entries.map(({ outcome, resourceId, actor, requestId }) => [
                outcome,
                resourceId,
                actor.username,
                requestId
            ])
        ).to.equal([['success', 'one', 'admin', 'r-1']]);
        expect(restorer.waiting().size).to.equal(0);
    });

    it('keeps it from another package, from what does not run, and over a restart', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        runs = { package: '@evil/one', generation: {} };
        expect((await restorer.restore('one', signal))?.state).to.equal('waiting');
        runs = null;
        expect((await restorer.restore('one', signal))?.state).to.equal('waiting');
        expect(asked).to.equal([]);
        await store.reopen();
        runs = { package: '@acme/one', generation: {} };
        expect((await restorerOf().restore('one', signal))?.state).to.equal('restored');
    });

    it('gives it anew to a generation that took the place of the one that was asked, and gives up in the end', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        tap = async () => {
            runs = { package: '@acme/one', generation: {} };
            return undefined;
        };
        expect(await restorer.restore('one', signal)).to.equal({
            state: 'failed',
            notes: ['it was cut 3 times while it took its data back']
        });
        expect([asked.length, restorer.waiting().size, entries[0]?.outcome]).to.equal([3, 0, 'failure']);
    });

    it('gives up on a plugin that takes the panel with it each time', async () => {
        await keep(restorerOf());
        tap = () => new Promise(() => undefined);
        for (const attempt of [1, 2, 3]) {
            const killed = restorerOf();
            void killed.restore('one', signal);
            while (asked.length < attempt) {
                await new Promise((resolve) => setImmediate(resolve));
            }
            await store.reopen();
        }
        const last = restorerOf();
        expect((await last.restore('one', signal))?.state).to.equal('failed');
        expect([asked.length, last.waiting().size]).to.equal([3, 0]);
    });

    it('leaves what the end of the panel cuts to the next start', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        tap = (_payload, given) =>
            new Promise((resolve) => given.addEventListener('abort', () => resolve(new Error('aborted'))));
        const work = restorer.restore('one', signal);
        while (asked.length === 0) {
            await new Promise((resolve) => setImmediate(resolve));
        }
        await restorer.close();
        expect([(await work)?.state, entries, restorer.waiting().size]).to.equal(['waiting', [], 1]);
    });

    it('waits in the background for an import that is under way, and tells a person of what fails', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        const release = restorer.hold();
        restorer.started('one');
        await new Promise((resolve) => setImmediate(resolve));
        expect(asked).to.equal([]);
        tap = async () => 'no list';
        release();
        while (notified.length === 0) {
            await new Promise((resolve) => setImmediate(resolve));
        }
        expect([
            notified,
            entries.map(({ outcome, after }) => [outcome, (after as { notes: unknown }).notes])
        ]).to.equal([['plugin.restoreFailed'], [['failure', ['it did not say what became of its data']]]]);
        restorer.started('one');
        expect(asked.length).to.equal(1);
    });

    it('has what the last import brought, and nothing of the one before', async () => {
        const restorer = restorerOf();
        await keep(restorer);
        await keep(restorer, { version: '3.0.0' });
        expect(restorer.waiting().get('one')?.version).to.equal('3.0.0');
        await store.db.write((tx) => restorer.forget(tx, 'one'));
        expect(await restorer.restore('one', signal)).to.be.null();
    });
});
